// Package setup decides which Dagger engine a machine uses and makes it ready. What is installed comes first: an engine
// that the environment names, then the dagger CLI with Docker. Only where neither works does it start an engine built
// from Go modules, and only where no registry answers does that engine get a mirror of stand-in images. It never
// installs Docker and never changes what is there.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/setup/gotool"
)

// RunnerHost is the variable by which the dagger CLI is told of an engine.
const RunnerHost = "_EXPERIMENTAL_DAGGER_RUNNER_HOST"

// Kind is where the engine comes from.
type Kind string

// The kinds, in the order of preference.
const (
	Named  Kind = "named by " + RunnerHost
	Docker Kind = "started by the dagger CLI with Docker"
	Built  Kind = "built from Go modules"
)

// Plan is the engine that a machine will use.
type Plan struct {
	Kind Kind
	// CLI is the folder of a dagger command that is not on PATH, if any.
	CLI string
	// Host is the value for RunnerHost; empty leaves it as it is.
	Host string
}

// Setup holds what a decision may need.
type Setup struct {
	// Engine is started when nothing is installed.
	Engine daggerengine.Engine
	// Pin writes down for the module what the mirror of the plan's engine holds in place of images. It may be nil.
	Pin func(context.Context, Plan) error
	// Log gets lines for a person.
	Log io.Writer
}

// Ready decides, makes the engine ready and returns the plan.
func (s Setup) Ready(ctx context.Context) (Plan, error) {
	plan, err := s.engine(ctx)
	if err != nil || s.Pin == nil {
		return plan, err
	}
	return plan, s.Pin(ctx, plan)
}

func (s Setup) engine(ctx context.Context) (Plan, error) {
	kind, reason := Decide(ctx)
	fmt.Fprintf(s.Log, "engine: %s (%s)\n", kind, reason)
	plan := Plan{Kind: kind}
	if kind == Built {
		status, err := s.Engine.Up(ctx)
		plan.CLI, plan.Host = status.CLI, status.Host
		return plan, err
	}
	if _, err := exec.LookPath("dagger"); err == nil {
		return plan, nil
	}
	fmt.Fprintln(s.Log, "the dagger CLI is not on PATH: building it (or install it from https://docs.dagger.io/install)")
	programs, err := gotool.Builder{Cache: filepath.Join(s.Engine.Cache, "tools"), Log: s.Log}.Build(ctx, "dagger")
	if err != nil {
		return plan, err
	}
	plan.CLI = filepath.Dir(programs["dagger"])
	return plan, nil
}

// Decide says which engine a machine has, and why, in a few words. A docker command alone says nothing: on some
// machines only the client is there.
func Decide(ctx context.Context) (Kind, string) {
	if host := os.Getenv(RunnerHost); host != "" {
		return Named, host
	}
	server, err := dockerServer(ctx)
	if err != nil {
		return Built, err.Error()
	}
	return Docker, "Docker " + server
}

// dockerServer asks for the version of Docker's daemon.
func dockerServer(ctx context.Context) (string, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "", errors.New("there is no docker command")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, docker, "version", "--format", "{{.Server.Version}}").Output()
	if err != nil {
		return "", errors.New("the docker command finds no daemon")
	}
	return strings.TrimSpace(string(output)), nil
}

// Env are the plan's variables for a child process, given its parent's.
func (p Plan) Env(environ []string) []string {
	for name, value := range p.variables() {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func (p Plan) variables() map[string]string {
	variables := map[string]string{"DAGGER_NO_NAG": "1"}
	if p.Host != "" {
		variables[RunnerHost] = p.Host
	}
	if p.CLI != "" {
		variables["PATH"] = p.CLI + string(os.PathListSeparator) + os.Getenv("PATH")
	}
	return variables
}

// Shell are the plan's variables as lines for a POSIX shell to evaluate.
func (p Plan) Shell() string {
	var b strings.Builder
	if p.Host != "" {
		fmt.Fprintf(&b, "export %s=%s\n", RunnerHost, quote(p.Host))
	}
	if p.CLI != "" {
		fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", quote(p.CLI))
	}
	b.WriteString("export DAGGER_NO_NAG=1\n")
	return b.String()
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// RegistriesAnswer tells whether images can be pulled: any answer of a registry counts, be it that it wants
// credentials.
func RegistriesAnswer(ctx context.Context, hosts ...string) bool {
	client := http.Client{Timeout: 10 * time.Second}
	for _, host := range hosts {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
		if err != nil {
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		response.Body.Close()
	}
	return true
}
