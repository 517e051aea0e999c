package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// DefaultTimeout bounds a command whose context carries no deadline.
const DefaultTimeout = 5 * time.Minute

const (
	// killGrace is how long git may take to remove its lock files between SIGTERM and SIGKILL.
	killGrace = 5 * time.Second
	// outputGrace is how long a process that git left behind may hold its output open. It is a last resort, long enough
	// not to fail commands on a machine that is merely slow.
	outputGrace = time.Minute
)

// inherited are the only variables of this process that git gets to see: where to find programs and temporary space, and
// how to reach the network (proxies and certificate authorities).
var inherited = []string{
	"PATH", "HOME", "TMPDIR",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
}

// baseConfig applies to every command.
var baseConfig = []Setting{
	// The caller names the folder it wants read, often one mounted with another owner; the ownership check would refuse
	// it. What that check guards against, programs named by the folder's own configuration, is switched off instead.
	{"safe.directory", "*"},
	{"core.fsmonitor", "false"},
	{"core.hooksPath", "/dev/null"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"advice.detachedHead", "false"},
	// A server that stops sending is given up after a minute, not at the deadline.
	{"http.lowSpeedLimit", "1"},
	{"http.lowSpeedTime", "60"},
}

// Setting is one of git's configuration. A key may itself have an equals sign in it, as that of a filter named a=b.
type Setting struct{ Key, Value string }

// Runner runs git. The zero value runs it in the current folder without credentials. A Runner is not changed by its
// methods and may be used by several goroutines.
type Runner struct {
	// Dir is the folder git runs in (its -C); empty means the current one.
	Dir string
	// Env holds further variables as KEY=VALUE; they win over the scrubbed environment.
	Env []string
	// Config holds settings for this Runner only; they win over every configuration file.
	Config []Setting
	// Credentials are what the remote asks for; the zero value is anonymous.
	Credentials Credentials
	// Timeout bounds each command whose context has no deadline; zero means DefaultTimeout.
	Timeout time.Duration
}

// Run runs git with the given arguments and returns its standard output as it is, the final newline included. The error
// is an *Error, whose text holds no secret of r.Credentials.
func (r Runner) Run(ctx context.Context, args ...string) (stdout string, err error) {
	return r.RunInput(ctx, nil, args...)
}

// RunInput is Run with a standard input.
func (r Runner) RunInput(ctx context.Context, stdin io.Reader, args ...string) (stdout string, err error) {
	var out bytes.Buffer
	err = r.run(ctx, stdin, &out, args)
	return out.String(), err
}

// Pipe is RunInput for much output: read gets it while git runs. An error of read ends git and is returned, unless git
// failed by itself, which is then what read stumbled over.
func (r Runner) Pipe(ctx context.Context, stdin io.Reader, read func(stdout io.Reader) error, args ...string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := r.run(running, stdin, writer, args)
		ended <- errors.Join(err, writer.Close())
	}()
	readErr := read(reader)
	if readErr != nil {
		cancel()
	}
	closeErr := reader.Close()
	err = <-ended
	var failed *Error
	if byItself := errors.As(err, &failed) && failed.ExitCode > 0; readErr != nil && !byItself && ctx.Err() == nil {
		return readErr
	}
	return errors.Join(err, closeErr)
}

// run runs git and writes its output to stdout.
func (r Runner) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args []string) error {
	if _, bounded := ctx.Deadline(); !bounded {
		timeout := r.Timeout
		if timeout <= 0 {
			timeout = DefaultTimeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	env, err := r.environment()
	if err != nil {
		return &Error{Args: r.Credentials.redactAll(args), ExitCode: -1, Cause: err}
	}

	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = env
	cmd.Stdin = stdin
	cmd.Stdout = stdout
	cmd.Stderr = &errOut
	cmd.WaitDelay = outputGrace
	release := endGroup(cmd, killGrace)
	defer release()
	if err := cmd.Run(); err != nil {
		return r.failure(ctx, args, errOut.String(), err)
	}
	return nil
}

// failure turns what is known about a failed command into an *Error without secrets.
func (r Runner) failure(ctx context.Context, args []string, stderr string, cause error) *Error {
	failed := &Error{
		Args:     r.Credentials.redactAll(args),
		ExitCode: -1,
		Stderr:   r.Credentials.redact(stderr),
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		failed.Cause = ctx.Err()
	case errors.Is(cause, exec.ErrNotFound):
		failed.Cause = errors.New("git is not installed or not in PATH")
	case errors.As(cause, &exit):
		failed.ExitCode = exit.ExitCode()
		failed.Kind = classify(stderr)
	default:
		failed.Cause = cause
	}
	return failed
}

// environment is the whole environment of the command.
func (r Runner) environment() ([]string, error) {
	if err := r.Credentials.validate(); err != nil {
		return nil, err
	}
	env := []string{
		"LC_ALL=C", // classify reads the messages
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		// git and OpenSSH would open a window or the terminal for a password or a passphrase. An empty GIT_ASKPASS keeps git
		// from asking SSH_ASKPASS, so that it says itself what it lacks.
		"GIT_ASKPASS=",
		"SSH_ASKPASS=false",
		"SSH_ASKPASS_REQUIRE=force",
	}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, r.Credentials.environment()...)

	settings := slices.Concat(baseConfig, r.Credentials.config(), r.Config)
	for i, setting := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, setting.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, setting.Value))
	}
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	return append(env, r.Env...), nil
}
