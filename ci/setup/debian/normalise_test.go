package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const status = `Package: git
Status: install ok installed
Depends: libc6
Version: 1:2.39.5-0+deb12u2

Package: removed
Status: deinstall ok config-files
Version: 1.0

Package: ca-certificates
Status: install ok installed
Version: 20250419
`

// made is a tar as mmdebstrap would write it at time at, with the traces that the host and the run leave; apt downloaded
// as the user aptUser.
func made(t *testing.T, at time.Time, hostname string, aptUser int) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	put := func(h tar.Header, body string) {
		h.ModTime, h.Size, h.Uname, h.Gname = at, int64(len(body)), "someone", "staff"
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(name string) { put(tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}, "") }
	folder("./")
	folder("./dev/")
	put(tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, "")
	put(tar.Header{Name: "./dev/fd", Typeflag: tar.TypeSymlink, Linkname: "/proc/self/fd"}, "")
	put(tar.Header{Name: "./etc/hostname"}, hostname)
	put(tar.Header{Name: "./etc/resolv.conf"}, "nameserver "+hostname)
	put(tar.Header{Name: "./etc/apt/sources.list"}, "deb http://"+hostname+"/debian bookworm main")
	put(tar.Header{Name: "./etc/passwd"}, "root:x:0:0::/root:/bin/sh\n")
	put(tar.Header{Name: "./etc/passwd-"}, hostname)
	folder("./tmp/")
	put(tar.Header{Name: "./usr/bin/ping", Mode: 0o755, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "cap"}}, "program")
	put(tar.Header{Name: "./usr/bin/ping4", Typeflag: tar.TypeLink, Linkname: "./usr/bin/ping"}, "")
	put(tar.Header{Name: "./usr/bin/relative", Typeflag: tar.TypeSymlink, Linkname: "./ping"}, "")
	folder("./var/cache/apt/")
	put(tar.Header{Name: "./var/cache/apt/pkgcache.bin"}, hostname)
	put(tar.Header{Name: "./var/cache/apt/archives/partial/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: aptUser}, "")
	put(tar.Header{Name: "./var/lib/dpkg/status"}, status)
	put(tar.Header{Name: "./var/lib/dpkg/status-old"}, hostname)
	put(tar.Header{Name: "./var/lib/dpkg/lock"}, "")
	folder("./var/log/nginx/")
	put(tar.Header{Name: "./var/log/nginx/access.log"}, hostname)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func normalised(t *testing.T, in []byte) ([]byte, map[string]string) {
	t.Helper()
	var out bytes.Buffer
	versions, err := normalise(bytes.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), versions
}

func TestTwoHostsOnTwoDaysMakeTheSameBytes(t *testing.T) {
	one, _ := normalised(t, made(t, time.Unix(1700000000, 5), "red", 0))
	two, _ := normalised(t, made(t, time.Unix(1800000000, 7), "a-much-longer-name", 42))
	if !bytes.Equal(one, two) {
		t.Error("the tars differ")
	}
	if bytes.Contains(one, []byte("red")) {
		t.Error("the host's name is in the root")
	}
}

func TestARootKeepsWhatAContainerNeedsAndNothingOfTheHost(t *testing.T) {
	out, _ := normalised(t, made(t, time.Unix(1700000000, 0), "red", 0))
	var names []string
	headers := map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		headers[h.Name] = h
		if h.ModTime.Unix() != Epoch || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s: time %d, owner %q, group %q", h.Name, h.ModTime.Unix(), h.Uname, h.Gname)
		}
	}
	want := []string{"dev/", "etc/passwd", "tmp/", "usr/bin/ping", "usr/bin/ping4", "usr/bin/relative",
		"var/cache/apt/", "var/lib/dpkg/status", "var/log/nginx/"}
	if !slices.Equal(names, want) {
		t.Fatalf("got  %v\nwant %v", names, want)
	}
	if h := headers["usr/bin/ping"]; h.Mode != 0o755 || h.PAXRecords["SCHILY.xattr.security.capability"] != "cap" {
		t.Errorf("mode %o, records %v", h.Mode, h.PAXRecords)
	}
	if h := headers["usr/bin/ping4"]; h.Typeflag != tar.TypeLink || h.Linkname != "usr/bin/ping" {
		t.Errorf("hard link to %q", h.Linkname)
	}
	if h := headers["usr/bin/relative"]; h.Linkname != "./ping" {
		t.Errorf("symbolic link to %q", h.Linkname)
	}
}

func TestVersionsAreThoseOfInstalledPackages(t *testing.T) {
	_, versions := normalised(t, made(t, time.Unix(1700000000, 0), "red", 0))
	want := map[string]string{"git": "1:2.39.5-0+deb12u2", "ca-certificates": "20250419"}
	if !maps.Equal(versions, want) {
		t.Errorf("got %v, want %v", versions, want)
	}
}

func TestATarThatIsNoDebianRootIsAnError(t *testing.T) {
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	whole := made(t, time.Unix(1700000000, 0), "red", 0)
	for name, in := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {empty.Bytes(), "has no var/lib/dpkg/status"},
		"cut":   {whole[:len(whole)/2+100], "unexpected EOF"},
	} {
		if _, err := normalise(bytes.NewReader(in.data), io.Discard); err == nil || !strings.Contains(err.Error(), in.want) {
			t.Errorf("%s: got %v, want %q", name, err, in.want)
		}
	}
}
