package workflows

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The script of the action is run as a runner would, with a curl that copies a file.
func TestTheActionInstallsOnlyTheArchiveThatItPins(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the action is for Linux")
	}
	archive := released(t, "#!/bin/sh\necho installed\n")
	right := fmt.Sprintf("v0.19.10 %x", sha256.Sum256(archive))
	for _, test := range []struct {
		name, architecture, pin string
		url, fails              string
	}{
		{name: "the archive", architecture: "X64", pin: right, url: "https://dl.dagger.io/dagger/releases/0.19.10/dagger_v0.19.10_linux_amd64.tar.gz"},
		{name: "that of the other architecture", architecture: "ARM64", pin: right, url: "https://dl.dagger.io/dagger/releases/0.19.10/dagger_v0.19.10_linux_arm64.tar.gz"},
		{name: "another archive", architecture: "X64", pin: "v0.19.10 " + strings.Repeat("0", 64), fails: "is not the one that was released"},
		{name: "no digest", architecture: "X64", pin: "v0.19.10", fails: "is not the one that was released"},
		{name: "another machine", architecture: "X86", pin: right, fails: "no SHA-256 of a dagger CLI for Linux X86 is pinned"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "archive"), archive, 0o600)
			write(t, filepath.Join(folder, "curl"), []byte("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncp "+folder+"/archive \"$2\"\necho \"$3\" > "+folder+"/url\n"), 0o700)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", actionScript(t))
			command.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "RUNNER_OS=Linux", "RUNNER_ARCH=" + test.architecture, "RUNNER_TEMP=" + folder,
				"GITHUB_PATH=" + filepath.Join(folder, "path"), "X64=" + test.pin, "ARM64=" + test.pin}
			said, err := command.CombinedOutput()
			path, _ := os.ReadFile(filepath.Join(folder, "path"))
			if test.fails != "" {
				if err == nil || !strings.Contains(string(said), "::error::") || !strings.Contains(string(said), test.fails) || len(path) > 0 {
					t.Errorf("it ended with %v, said %q and put %q into the path", err, said, path)
				}
				if _, err := os.Stat(filepath.Join(folder, "dagger-cli", "bin", "dagger")); err == nil {
					t.Error("it unpacked what it had not verified")
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if url, _ := os.ReadFile(filepath.Join(folder, "url")); strings.TrimSpace(string(url)) != test.url {
				t.Errorf("it asked for %s, not for %s", url, test.url)
			}
			if said, err := exec.Command(filepath.Join(strings.TrimSpace(string(path)), "dagger")).Output(); err != nil || string(said) != "installed\n" {
				t.Errorf("got %q, %v", said, err)
			}
		})
	}
}

func actionScript(t *testing.T) string {
	t.Helper()
	f, err := Read(filepath.Join(repository, ".github/actions/dagger/action.yaml"), engineVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	return text(f.allSteps()[0], "run")
}

// released is an archive as the project releases it.
func released(t *testing.T, program string) []byte {
	t.Helper()
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	archive := tar.NewWriter(compressed)
	for name, content := range map[string]string{"LICENSE": "…", "dagger": program} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func write(t *testing.T, name string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, data, mode); err != nil {
		t.Fatal(err)
	}
}
