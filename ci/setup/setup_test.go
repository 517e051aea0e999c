package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onPath replaces PATH by a folder with one program, a shell script.
func onPath(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if name != "" {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv(RunnerHost, "")
}

func TestAnEngineThatTheEnvironmentNamesComesFirst(t *testing.T) {
	onPath(t, "docker", "echo 28.2.2")
	t.Setenv(RunnerHost, "tcp://engine.example:1234")
	if kind, _ := Decide(t.Context()); kind != Named {
		t.Errorf("got %q, want %q", kind, Named)
	}
}

func TestDockerIsUsedWhereItsDaemonAnswers(t *testing.T) {
	onPath(t, "docker", "echo 28.2.2")
	if kind, reason := Decide(t.Context()); kind != Docker || !strings.Contains(reason, "28.2.2") {
		t.Errorf("got %q (%s), want %q with the daemon's version", kind, reason, Docker)
	}
}

func TestADockerCommandWithoutADaemonIsNotEnough(t *testing.T) {
	onPath(t, "docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
	if kind, reason := Decide(t.Context()); kind != Built || !strings.Contains(reason, "no daemon") {
		t.Errorf("got %q (%s), want %q for lack of a daemon", kind, reason, Built)
	}
}

func TestWithoutAnythingTheEngineIsBuilt(t *testing.T) {
	onPath(t, "", "")
	if kind, _ := Decide(t.Context()); kind != Built {
		t.Errorf("got %q, want %q", kind, Built)
	}
}

func TestAShellReadsThePlansVariablesAsTheyAre(t *testing.T) {
	plan := Plan{Kind: Built, CLI: "/cache/it's here", Host: "unix:///run/a b.sock"}
	output, err := exec.CommandContext(t.Context(), "sh", "-c", plan.Shell()+`printf '%s\n%s' "$`+RunnerHost+`" "$PATH"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	host, path, _ := strings.Cut(string(output), "\n")
	if host != plan.Host || !strings.HasPrefix(path, plan.CLI+":") {
		t.Errorf("got host %q and path %q", host, path)
	}
}

func TestARegistryThatCannotBeFoundDoesNotAnswer(t *testing.T) {
	if RegistriesAnswer(t.Context(), "127.0.0.1:1") {
		t.Error("a closed port answered")
	}
}
