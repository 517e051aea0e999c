package canary

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/redact/redacttest"
)

// secrets are one with every character that some form escapes, and a key as Kubernetes and Talos keep theirs.
func secrets(t *testing.T) map[string]string {
	t.Helper()
	der := make([]byte, 90)
	rand.Read(der)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return map[string]string{"token": redacttest.Token, "key": string(key), "key as data": base64.StdEncoding.EncodeToString(key)}
}

func TestASecretIsFoundInEveryForm(t *testing.T) {
	for form, text := range redacttest.Leaks(t) {
		search := New(map[string]string{"token": redacttest.Token, "key": redacttest.Key, "value": "w7CanaryCanaryQ==", "id": "0Xk3CanaryCanary9", "was": "oldCanary7f3a"})
		search.Text("a text", []byte("in front "+text+" behind"))
		if len(search.Leaks) == 0 {
			t.Errorf("%s is not found: %s", form, text)
		}
	}
}

func TestWhatHoldsNoSecretIsNoLeak(t *testing.T) {
	search := New(secrets(t))
	search.Text("a text", []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\ntoken, PRIVATE KEY, 7f3a"))
	if len(search.Leaks) > 0 || search.Places != 1 {
		t.Errorf("found %v in %d places", search.Leaks, search.Places)
	}
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	file, err := archive.Create("state.json")
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarred(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	var err error
	// What comes last is longer than a zip's end is looked for.
	for _, member := range [][]byte{data, make([]byte, 100<<10)} {
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Name: "log/platform.log", Mode: 0o600, Size: int64(len(member))})
		}
		if err == nil {
			_, err = archive.Write(member)
		}
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestASecretIsFoundInArchives(t *testing.T) {
	all := secrets(t)
	for name, secret := range all {
		plain := []byte("padding so that nothing begins at the front: " + secret + "\n")
		for kind, data := range map[string][]byte{
			"gzip": gzipped(t, plain), "zip": zipped(t, plain), "tar": tarred(t, plain), "tar.gz": gzipped(t, tarred(t, plain)),
			"gzip within zip": zipped(t, gzipped(t, plain)), "zip within tar": tarred(t, zipped(t, plain)), "gzip behind a line": append([]byte("dump follows\n"), gzipped(t, plain)...),
			"the second gzip": append(gzipped(t, []byte("nothing")), gzipped(t, plain)...),
		} {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "file"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			search := New(all)
			if err := search.Folder(folder); err != nil || len(search.Leaks[name]) == 0 {
				t.Errorf("%s in %s is not found: %v", name, kind, err)
			}
		}
	}
}

func TestTheSourcesOfSecretsAreSkippedByName(t *testing.T) {
	folder := t.TempDir()
	all := secrets(t)
	if err := os.WriteFile(filepath.Join(folder, "age.key"), []byte(all["token"]), 0o600); err != nil {
		t.Fatal(err)
	}
	search := New(all)
	if err := search.Folder(folder, "age.key"); err != nil || len(search.Leaks) > 0 {
		t.Errorf("%v, %v", search.Leaks, err)
	}
	if err := search.Folder(folder, "another"); err != nil || len(search.Leaks) == 0 {
		t.Errorf("a file that is not skipped was not searched: %v", err)
	}
}
