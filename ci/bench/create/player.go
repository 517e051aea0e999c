//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/environment"
)

// The programs that this one can play.
const (
	playTerragrunt = "terragrunt"
	playCastle     = "castle-cluster"
)

// settings are what a player needs to know; they stand in a file, since castle clears the environment.
type settings struct {
	Castle, Terragrunt string   // the real ones
	Trace              string   // file for the output's lines with their times
	Script             bool     // one unit after the other, in the script's order
	Variables          []string // NAME=VALUE on top of the environment
}

// exitCode is that of a program that was played.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func play(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("play NAME SETTINGS [ARGUMENT...]: this is called by the benchmark itself")
	}
	name, args := args[0], args[1:]
	var s settings
	data, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return err
	}
	if name == playCastle {
		return castlePlayer(ctx, s, args[1:])
	}
	if err := inheritSecrets(); err != nil {
		return err
	}
	player, err := newPlayer(s)
	if err != nil {
		return err
	}
	defer player.trace.Close()
	if s.Script && !slices.Equal(args[1:], []string{"--version"}) { // which castle asks for before it begins
		return player.script(ctx, args[1:])
	}
	_, err = player.real(".", ".", args[1:])
	return err
}

// inheritSecrets takes all layers' variables into the environment, as plain Terragrunt needs them: castle answers
// this program, which it takes for Terragrunt, and would not answer the children of the real one.
func inheritSecrets() error {
	for _, layer := range layers.All {
		for _, hook := range []bool{false, true} {
			variables, err := environment.Ask(environment.Request{Layer: layer.Name, Hook: hook})
			if err != nil {
				return err
			}
			for _, entry := range variables {
				name, value, _ := strings.Cut(entry, "=")
				if err := os.Setenv(name, value); err != nil {
					return err
				}
			}
		}
	}
	return os.Unsetenv(environment.VariableSocket)
}

// line is a line of the output.
type line struct {
	Time time.Time `json:"time"`
	Unit string    `json:"unit"` // "" for Terragrunt's own
	Text string    `json:"text"`
}

// player runs the real Terragrunt and notes when it printed what.
type player struct {
	settings
	trace *os.File
	mutex sync.Mutex // of standard output and the trace
}

func newPlayer(s settings) (*player, error) {
	trace, err := os.OpenFile(s.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// An interrupt goes to the whole group: the children end by it, and this program when they have.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	return &player{settings: s, trace: trace}, nil
}

// real runs Terragrunt in a folder. Lines that name no unit themselves are of the one given, "." for none.
func (p *player) real(dir, unit string, args []string) (string, error) {
	command := exec.Command(p.Terragrunt, args...)
	command.Dir, command.Env = dir, append(os.Environ(), p.Variables...)
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	var all bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- p.copy(read, unit, &all) }()
	p.note(unit, eventStart)
	err := command.Run()
	_ = write.Close() // never fails
	err = errors.Join(err, <-done)
	p.note(unit, eventEnd)
	if command.ProcessState != nil && !command.ProcessState.Success() {
		return all.String(), exitCode(max(command.ProcessState.ExitCode(), 1))
	}
	return all.String(), err
}

// Lines of the trace that no tool prints.
const (
	eventStart = "terragrunt starts"
	eventEnd   = "terragrunt ended"
)

func (p *player) copy(from io.Reader, unit string, all *bytes.Buffer) error {
	reader := bufio.NewReader(from)
	for {
		text, err := reader.ReadString('\n')
		if text != "" {
			all.WriteString(text)
			p.pass(text, unit)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pass hands a line on, whole, and notes it.
func (p *player) pass(text, unit string) {
	var parsed struct {
		Folder  string `json:"working-dir"`
		Message string `json:"msg"`
	}
	message := text
	if json.Unmarshal([]byte(text), &parsed) == nil && parsed.Message != "" {
		message = parsed.Message
		if here, err := os.Getwd(); err == nil && filepath.IsAbs(parsed.Folder) {
			if below, err := filepath.Rel(here, parsed.Folder); err == nil {
				parsed.Folder = below
			}
		}
		if below, _, _ := strings.Cut(parsed.Folder, "/"); below != "" && below != "." && below != ".." {
			unit = below
		}
	}
	p.mutex.Lock()
	_, _ = os.Stdout.WriteString(text) // nobody is there to be told
	p.mutex.Unlock()
	p.note(unit, strings.TrimSpace(message))
}

func (p *player) note(unit, text string) {
	if unit == "." {
		unit = ""
	}
	data, err := json.Marshal(line{Time: time.Now(), Unit: unit, Text: text})
	if err != nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, _ = p.trace.Write(append(data, '\n')) // a hole in the trace is seen by who reads it
}

func readTrace(name string) ([]line, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []line
	for text := range bytes.Lines(data) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// castlePlayer is castle as the layers' hooks call it while the script's order is played: gates are looked at as the script
// did, everything else is the real castle's.
func castlePlayer(ctx context.Context, s settings, args []string) error {
	switch {
	case len(args) >= 2 && args[0] == "wait":
		return poll(ctx, args[len(args)-1])
	case len(args) == 3 && args[0] == "layer" && args[1] == "fail":
		return nil // the layer is tried again
	}
	return syscall.Exec(s.Castle, append([]string{"castle-cluster"}, args...), os.Environ())
}
