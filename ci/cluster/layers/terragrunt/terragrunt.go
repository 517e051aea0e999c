// Package terragrunt runs Terragrunt on one unit of a folder at a time; the order of the units is the caller's. It never writes what a tool
// prints to a file by itself: the caller's writers may have to redact it.
package terragrunt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tazlab.net/castle/ci/cluster/layers/environment"
)

// Runner is Terragrunt on one folder of units. Several units may run at the same time.
type Runner struct {
	Binary string   // "terragrunt"
	Tofu   string   // OpenTofu or Terraform
	Dir    string   // folder whose subfolders are the units
	Env    []string // the whole environment of Terragrunt, which all of its children inherit
	// Downloads is a folder in which Terragrunt puts each unit's module together; what OpenTofu leaves there is still there when Run returns.
	Downloads string
	// Secrets are what OpenTofu gets besides; nil: nothing. This program is then started in the place of Tofu and calls environment.Exec where
	// environment.IsTool says so.
	Secrets environment.Source
	Plan    string // file that takes the plan as JSON, where the command is one; empty: none
	// Log receives what the tools print, a message of one or several lines at a time, by unit; unit is "" for Terragrunt's own messages. It
	// is called from one goroutine at a time for each unit.
	Log func(unit, message string)
	// Grace is how long Terragrunt has to end its children after the context's end; 0 means 30 s.
	Grace time.Duration
}

// Run runs an OpenTofu command in a unit ("apply", "-auto-approve").
func (r Runner) Run(ctx context.Context, unit string, command ...string) (err error) {
	if r.Dir, err = filepath.Abs(r.Dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "terragrunt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	started := func(int) {}
	if r.Secrets != nil {
		server, err := r.serve(scratch)
		if err != nil {
			return err
		}
		defer server.Close()
		started = server.Admit
	}
	args := []string{"run", "--non-interactive", "--no-color", "--log-format=json", "--tf-path=" + r.Tofu, "--download-dir=" + r.Downloads,
		// With it, units that are initialised at the same time replace each other's providers.
		"--no-auto-provider-cache-dir"}
	folder := filepath.Join(r.Dir, unit)
	if r.Plan != "" { // which Terragrunt gives as JSON of several units alone
		folder = r.Dir
		args = append(args, "--all", "--filter=./"+unit, "--json-out-dir="+scratch)
	}
	err = r.run(ctx, folder, unit, append(append(args, "--"), command...), started)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && r.Plan != "" {
		err = os.Rename(filepath.Join(scratch, unit, "tfplan.json"), r.Plan)
	}
	return err
}

// serve has the children ask for their secrets, and this program take the place of OpenTofu.
func (r *Runner) serve(scratch string) (*environment.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tool, err := exec.LookPath(r.Tofu)
	if err == nil {
		tool, err = filepath.Abs(tool) // it is started in other folders
	}
	if err != nil {
		return nil, err
	}
	inPlace := filepath.Join(scratch, filepath.Base(tool))
	if err := os.Symlink(program, inPlace); err != nil {
		return nil, err
	}
	server, err := environment.Serve(r.Secrets)
	if err != nil {
		return nil, err
	}
	r.Env = append(slices.Clip(r.Env), environment.VariableSocket+"="+server.Address(), environment.VariableTool+"="+tool)
	r.Tofu = inPlace
	return server, nil
}

// run runs Terragrunt, and says its process id once it has started.
func (r Runner) run(ctx context.Context, folder, unit string, args []string, started func(pid int)) error {
	command := exec.CommandContext(ctx, r.Binary, args...)
	command.Dir, command.Env = folder, r.Env
	// Terragrunt and its children get the interrupt as one group, once, as at a terminal.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = r.Grace
	if command.WaitDelay == 0 {
		command.WaitDelay = 30 * time.Second
	}
	var last tail
	log := &lineWriter{line: func(line string) {
		tools, message := parse(line)
		of := ""
		if tools {
			of = unit
		} else {
			last.add(message)
		}
		if r.Log != nil {
			r.Log(of, message)
		}
	}}
	command.Stdout, command.Stderr = log, log
	err := command.Start()
	if err == nil {
		started(command.Process.Pid)
		err = command.Wait()
	}
	log.flush()
	if command.Process != nil && (errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil) {
		// What did not end in time must not go on changing the world unseen.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		return fmt.Errorf("terragrunt: %w%s", err, last.text())
	}
	return nil
}

// logLine is one line of --log-format=json.
type logLine struct {
	Tool    string `json:"tf-path"` // that printed it; empty: Terragrunt itself
	Message string `json:"msg"`
	Level   string `json:"level"`
}

// parse takes a line apart; what is no JSON (a panic) is handed on as it is.
func parse(line string) (tools bool, message string) {
	var parsed logLine
	if err := json.Unmarshal([]byte(line), &parsed); err != nil || parsed.Level == "" {
		return false, line
	}
	return parsed.Tool != "", strings.Trim(parsed.Message, "\n")
}

// tail keeps the last lines, for an error that has no better cause.
type tail []string

func (t *tail) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	if *t = append(*t, line); len(*t) > 5 {
		*t = (*t)[1:]
	}
}

func (t tail) text() string {
	if len(t) == 0 {
		return ""
	}
	return ": " + strings.Join(t, "\n")
}

// lineWriter calls line for each line written, from whichever of the two streams.
type lineWriter struct {
	mutex sync.Mutex
	rest  bytes.Buffer
	line  func(string)
}

var _ io.Writer = (*lineWriter)(nil)

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.rest.Write(p)
	for {
		data := w.rest.Bytes()
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return len(p), nil
		}
		w.line(strings.TrimSuffix(string(data[:end]), "\r"))
		w.rest.Next(end + 1)
	}
}

func (w *lineWriter) flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.rest.Len() > 0 {
		w.line(w.rest.String())
		w.rest.Reset()
	}
}
