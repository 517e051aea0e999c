package gotool

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/redact"
)

// buildLog keeps what the go command says while a tool is built: hundreds of lines of downloads, of which a person wants
// to see none, and maybe an error.
type buildLog struct {
	file *os.File
	used *time.Duration // of all cores together, by the commands so far
}

// openLog begins the log of a tool's build, beside the versions that were built, in place of that of the build before.
func (b Builder) openLog(recipe Recipe) (buildLog, error) {
	file, err := os.Create(filepath.Join(b.Cache, recipe.Name, "build.log"))
	return buildLog{file: file, used: new(time.Duration)}, err
}

func (l buildLog) close() { _ = l.file.Close() }

// output runs a go command. Its error has the last lines of what it said, without the downloads, and names the log.
func (l buildLog) output(command *exec.Cmd) (string, error) {
	log := redact.Writer(l.file)
	fmt.Fprintf(log, "$ %s\n", strings.Join(command.Args, " "))
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, io.MultiWriter(&stderr, log)
	err := command.Run()
	if state := command.ProcessState; state != nil {
		*l.used += state.UserTime() + state.SystemTime()
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s\nall of its output is in %s", command.Args[1], err, lastLines(withoutDownloads(stderr.String()), 20), l.file.Name())
	}
	return stdout.String(), nil
}

func withoutDownloads(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
