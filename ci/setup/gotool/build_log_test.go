package gotool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
)

// onFakeGo replaces the go command by one that downloads something, says so, and then does the rest of a build: $OUT is
// the folder that the program of etcd's recipe is wanted in.
func onFakeGo(t *testing.T, rest string) {
	t.Helper()
	root := t.TempDir()
	script := `#!/bin/sh
case $1 in
env) echo "` + root + `"; exit ;;
esac
for argument; do case $previous in -o) OUT=$argument ;; esac; previous=$argument; done
i=0; while [ $i -lt 30 ]; do echo "go: downloading example.com/module$i v1.0.0" >&2; i=$((i + 1)); done
` + rest
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(root, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func readLog(t *testing.T, cache string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cache, "etcd", "build.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestABuildTakesTwoLinesHoweverMuchItDownloads(t *testing.T) {
	onFakeGo(t, `echo etcd > "$OUT/server"`)
	var said strings.Builder
	builder := Builder{Cache: t.TempDir(), Log: &said}
	if _, err := builder.Build(t.Context(), "etcd"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || lines[0] != "building etcd v3.6.8 from Go modules (some 1 min on two cores)" || !strings.HasPrefix(lines[1], "built etcd v3.6.8 in ") {
		t.Errorf("said:\n%s", said.String())
	}
	if log := readLog(t, builder.Cache); strings.Count(log, "go: downloading ") != 30 {
		t.Errorf("the log has\n%s", log)
	}
	if estimate := builder.Estimate(load(t, "etcd")); !estimate.Measured {
		t.Errorf("how long it took is not known: %v", estimate)
	}
}

func TestAFailedBuildShowsTheErrorAndNamesTheLog(t *testing.T) {
	onFakeGo(t, `echo "# example.com/broken" >&2; echo "broken.go:7:2: undefined: nonesuch" >&2; exit 1`)
	builder := Builder{Cache: t.TempDir()}
	_, err := builder.Build(t.Context(), "etcd")
	if err == nil {
		t.Fatal("a failed build is none")
	}
	want := fmt.Sprintf("build etcd v3.6.8: go build: exit status 1\n# example.com/broken\nbroken.go:7:2: undefined: nonesuch\nall of its output is in %s",
		filepath.Join(builder.Cache, "etcd", "build.log"))
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if log := readLog(t, builder.Cache); !strings.Contains(log, "$ ") || !strings.Contains(log, "go: downloading ") || !strings.Contains(log, "undefined: nonesuch") {
		t.Errorf("the log has\n%s", log)
	}
}

func TestASecretIsNotInTheLogOfABuild(t *testing.T) {
	const canary = "canary-7c1e-proxy-password"
	redact.Add(canary)
	onFakeGo(t, `echo "go: https://me:`+canary+`@proxy.example.com: 407" >&2; exit 1`)
	builder := Builder{Cache: t.TempDir()}
	if _, err := builder.Build(t.Context(), "etcd"); err == nil {
		t.Fatal("a failed build is none")
	}
	if log := readLog(t, builder.Cache); strings.Contains(log, canary) || !strings.Contains(log, redact.Mark) {
		t.Errorf("the log has\n%s", log)
	}
}
