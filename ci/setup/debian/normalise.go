package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

const dpkgStatus = "var/lib/dpkg/status"

// Files that tell of the host or of the run that made the root.
var (
	dropped = []string{
		"etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id",
		"etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
		"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-",
	}
	// Below these, directories stay and files go.
	emptied = []string{"var/log/", "var/cache/ldconfig/", "run/", "tmp/"}
	// Below these everything goes. The first are a container runtime's to mount; in apt's, folders belong to whichever
	// user could download into the place where the root was put together, and apt makes them itself when it needs them.
	hollow = []string{"dev/", "proc/", "sys/", "var/lib/apt/lists/", "var/cache/apt/"}
)

func keep(header *tar.Header) bool {
	below := func(folders []string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool {
			return strings.HasPrefix(header.Name, folder) && header.Name != folder
		})
	}
	switch {
	case header.Name == "", slices.Contains(dropped, header.Name), below(hollow):
		return false
	case below(emptied):
		return header.Typeflag == tar.TypeDir
	case strings.HasPrefix(header.Name, "var/lib/dpkg/"), strings.HasPrefix(header.Name, "var/cache/debconf/"):
		base := path.Base(header.Name)
		return !strings.HasSuffix(base, "-old") && !strings.HasPrefix(base, "lock")
	default:
		return true
	}
}

// normalise copies the tar of a root from r to w: without what keep refuses, without a leading "./", with Epoch as every
// time and with numeric owners only. It returns the versions of the packages that the root's dpkg knows as installed.
func normalise(r io.Reader, w io.Writer) (map[string]string, error) {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	var versions map[string]string
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the root: %w", err)
		}
		header.Name = strings.TrimPrefix(strings.TrimPrefix(header.Name, "."), "/")
		if !keep(header) {
			continue
		}
		clean := &tar.Header{
			Typeflag: header.Typeflag, Name: header.Name, Linkname: header.Linkname, Size: header.Size, Mode: header.Mode,
			Uid: header.Uid, Gid: header.Gid, Devmajor: header.Devmajor, Devminor: header.Devminor, ModTime: time.Unix(Epoch, 0),
		}
		if header.Typeflag == tar.TypeLink {
			clean.Linkname = strings.TrimPrefix(header.Linkname, "./")
		}
		for key, value := range header.PAXRecords {
			if strings.HasPrefix(key, "SCHILY.xattr.") { // file capabilities, among others
				if clean.PAXRecords == nil {
					clean.PAXRecords = map[string]string{}
				}
				clean.PAXRecords[key] = value
			}
		}
		if err := out.WriteHeader(clean); err != nil {
			return nil, fmt.Errorf("write the root: %w", err)
		}
		body := io.Reader(in)
		var status bytes.Buffer
		if header.Name == dpkgStatus {
			body = io.TeeReader(in, &status)
		}
		if _, err := io.Copy(out, body); err != nil {
			return nil, fmt.Errorf("copy %s of the root: %w", header.Name, err)
		}
		if header.Name == dpkgStatus {
			versions = installed(&status)
		}
	}
	if versions == nil {
		return nil, errors.New("the root has no " + dpkgStatus)
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("write the root: %w", err)
	}
	return versions, nil
}

// installed reads dpkg's status file: package name to version.
func installed(status io.Reader) map[string]string {
	versions := map[string]string{}
	var name, state string
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20) // a line of dependencies may be longer than the scanner expects
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "Package":
			name, state = value, ""
		case "Status":
			state = value
		case "Version":
			if state == "install ok installed" {
				versions[name] = value
			}
		}
	}
	return versions
}
