package demo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daemon"
	"tazlab.net/castle/ci/setup/daggerengine"
)

// Demo is one demonstration of a checkout.
type Demo struct {
	// Dir is the demo's own folder, removed by Down.
	Dir string
	// Source is the checkout whose blog is published.
	Source string
	// Setup makes an engine ready, with the images of publishing.
	Setup setup.Setup
	// Images makes the images of the cluster's pipelines ready for the engine while it runs.
	Images func(context.Context, setup.Plan) error
	// Serve is the command that calls World.Serve on Dir.
	Serve []string
	// Out and Log are for what is shown and for progress.
	Out, Log io.Writer

	// registry and git are the world's addresses; empty: those that the documentation names.
	registry, git string
}

// World is what the demo publishes into.
func (d Demo) World() World {
	return World{Dir: filepath.Join(d.Dir, "world"), Registry: cmp.Or(d.registry, defaultRegistry), Git: cmp.Or(d.git, defaultGit)}
}

func (d Demo) daemon() daemon.Daemon {
	return daemon.Daemon{Name: "demo", Record: filepath.Join(d.Dir, "world.json"), Log: filepath.Join(d.Dir, "world.log")}
}

// startedEngine marks that the demo, and nobody before it, started the engine.
func (d Demo) startedEngine() string { return filepath.Join(d.Dir, "started-engine") }

// Up publishes the blog, shows the result, and then creates a cluster and publishes into that. What only the cluster needs
// is made after the result is shown: where nothing can be pulled, that takes most of an hour. It can be repeated, and
// goes on where it was interrupted.
func (d Demo) Up(ctx context.Context) error {
	err := d.up(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted, `make demo` goes on where it was: %w", err)
	}
	return err
}

func (d Demo) up(ctx context.Context) error {
	if err := os.MkdirAll(d.World().Dir, 0o755); err != nil {
		return err
	}
	plan, err := d.engine(ctx)
	if err != nil {
		return err
	}
	password := rand.Text()
	if err := d.serveWorld(ctx, password); err != nil {
		return err
	}
	environment := append(plan.Env(os.Environ()), passwordVariable+"="+password)

	result, err := d.publish(ctx, environment)
	if err != nil {
		return err
	}
	fmt.Fprint(d.Out, "\n"+result.Text())
	if err := d.showCommit(ctx); err != nil {
		return err
	}
	if err := d.showPage(ctx, environment, result); err != nil {
		return err
	}
	fmt.Fprint(d.Out, "\nThat was publishing. Next: a cluster in the sandbox, and the blog published into it.\n")
	if err := d.Images(ctx, plan); err != nil {
		return err
	}
	if err := d.cluster(ctx, environment); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nThe registry (%s) and the Git remote (%s) stay up; `make demo-down` removes them.\n", d.World().Registry, d.World().Git)
	return nil
}

// Down stops and removes what the demo started.
func (d Demo) Down(ctx context.Context) error {
	if _, err := d.daemon().Stop(ctx, 10*time.Second); err != nil {
		return err
	}
	switch _, err := os.Stat(d.startedEngine()); {
	case err == nil:
		if _, err := d.Setup.Engine.Down(ctx); err != nil {
			return err
		}
		fmt.Fprintln(d.Log, "stopped the engine that the demo had started")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.RemoveAll(d.Dir)
}

func (d Demo) engine(ctx context.Context) (setup.Plan, error) {
	before, err := d.Setup.Engine.Status(ctx)
	if err != nil {
		return setup.Plan{}, err
	}
	plan, err := d.Setup.Ready(ctx)
	if err == nil && plan.Kind == setup.Built && before.State != daggerengine.Running {
		err = os.WriteFile(d.startedEngine(), nil, 0o644)
	}
	return plan, err
}

// serveWorld starts the registry and the Git remote with a new password.
func (d Demo) serveWorld(ctx context.Context, password string) error {
	if _, err := d.daemon().Stop(ctx, 10*time.Second); err != nil {
		return err
	}
	if err := os.Remove(d.World().serving()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := d.daemon().Start(ctx, daemon.Spec{
		Command:  d.Serve,
		Env:      []string{passwordVariable + "=" + password},
		Deadline: 30 * time.Second,
		Ready: func(context.Context) error {
			_, err := os.Stat(d.World().serving())
			return err
		},
	})
	return err
}

// call is a `dagger call` of the checkout's own module, with the arguments that every function on the demo's registry
// takes.
func (d Demo) call(ctx context.Context, environment []string, function string, args ...string) *exec.Cmd {
	return d.dagger(ctx, environment, append([]string{"call", function,
		"--image=" + d.World().image(),
		"--registry-username=" + username, "--registry-password=env:" + passwordVariable,
		"--registry-service=tcp://" + d.World().Registry,
	}, args...)...)
}

// dagger is a dagger command in the checkout, which ends when ctx does.
func (d Demo) dagger(ctx context.Context, environment []string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "dagger", args...)
	if path, err := lookPathIn(environment, "dagger"); err == nil {
		command.Path, command.Err = path, nil
	}
	command.Dir = d.Source
	command.Env = environment
	command.Stderr = d.Log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	return command
}

func (d Demo) publish(ctx context.Context, environment []string) (report.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	command := d.call(ctx, environment, "publish-blog", "--headers=strict",
		"--gitops-url="+d.World().gitURL(), "--gitops-branch="+branch, "--manifest-path="+manifestPath,
		"--git-token=env:"+passwordVariable, "--gitops-service=tcp://"+d.World().Git,
		"--format=JSON")
	fmt.Fprintf(d.Out, "$ dagger %s\n", strings.Join(command.Args[1:], " "))
	output, err := command.Output()
	var result report.Result
	if err != nil {
		return result, fmt.Errorf("dagger call publish-blog: %w", err)
	}
	return result, json.Unmarshal(output, &result)
}

// showCommit prints the newest commit of the GitOps repository.
func (d Demo) showCommit(ctx context.Context) error {
	shown, err := git.Runner{Dir: d.World().gitopsDir()}.Run(ctx, "show", "--format=%an <%ae>%n%n%B", "--stat", branch)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nThe newest commit of the GitOps repository:\n\n%s\n", indent(shown))
	return nil
}

var title = regexp.MustCompile(`(?s)<title>(.*?)</title>`)

// showPage starts the published image and fetches a page from it.
func (d Demo) showPage(ctx context.Context, environment []string, result report.Result) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return err
	}
	var output bytes.Buffer
	command := d.call(ctx, environment, "serve-blog", "--tag="+result.Image.Tag, "up", fmt.Sprintf("--ports=%d:80", port))
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	defer func() { cancel(); <-exited }()

	url := fmt.Sprintf("http://localhost:%d/", port)
	response, body, err := fetch(ctx, url, exited)
	if err != nil {
		return fmt.Errorf("fetch a page from the published image: %w\n%s", err, output.String())
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the published image answered GET / with %s\n%s", response.Status, output.String())
	}
	name := "no title"
	if found := title.FindSubmatch(body); found != nil {
		name = string(found[1])
	}
	fmt.Fprintf(d.Out, "The front page, fetched from the published image:\n\n    GET / -> %s, %d bytes, %q\n", response.Status, len(body), name)
	return nil
}

// fetch asks until the server answers; it gives up when the server ends.
func fetch(ctx context.Context, url string, exited chan error) (*http.Response, []byte, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			return response, body, err
		}
		select {
		case ended := <-exited:
			exited <- ended
			return nil, nil, fmt.Errorf("the service ended: %w", cmp.Or(ended, errors.New("exit status 0")))
		case <-ctx.Done():
			return nil, nil, err
		case <-ticker.C:
		}
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// lookPathIn finds a program on the PATH of an environment that is not ours.
func lookPathIn(environment []string, name string) (string, error) {
	for i := len(environment) - 1; i >= 0; i-- {
		path, found := strings.CutPrefix(environment[i], "PATH=")
		if !found {
			continue
		}
		for _, folder := range filepath.SplitList(path) {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return filepath.Join(folder, name), nil
			}
		}
		break
	}
	return "", exec.ErrNotFound
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
