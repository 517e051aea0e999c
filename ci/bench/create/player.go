//go:build linux

package main

import (
	"bufio"
	"bytes"
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
	"syscall"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
)

// settings are what the stand-in of Terragrunt needs to know; they stand in a file, since castle clears the environment.
type settings struct {
	Terragrunt string   // the real one
	Trace      string   // file for the output's lines with their times
	Variables  []string // NAME=VALUE on top of the environment
}

// exitCode is that of a program that was played.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// play becomes Terragrunt, since castle answers the children of the process that it has started alone. What that prints goes through another
// process, which notes the times.
func play(args []string) error {
	s, err := readSettings(args)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	tee := exec.Command(self, "tee", args[0])
	tee.Stdin, tee.Stdout, tee.Stderr = read, os.Stdout, os.Stderr
	if err := tee.Start(); err != nil {
		return err
	}
	for _, stream := range []int{1, 2} {
		if err := syscall.Dup3(int(write.Fd()), stream, 0); err != nil {
			return err
		}
	}
	return syscall.Exec(s.Terragrunt, append([]string{s.Terragrunt}, args[1:]...), append(os.Environ(), s.Variables...))
}

func readSettings(args []string) (s settings, err error) {
	if len(args) < 1 {
		return s, errors.New("play SETTINGS [ARGUMENT...]: this is called by the benchmark itself")
	}
	data, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// line is a line of the output.
type line struct {
	Time time.Time `json:"time"`
	Unit string    `json:"unit"` // "" for Terragrunt on no unit
	Text string    `json:"text"`
}

// tee hands on what Terragrunt prints in a unit's folder, and notes when.
func tee(args []string) error {
	s, err := readSettings(args)
	if err != nil {
		return err
	}
	// An interrupt goes to the whole group: this ends when the others have.
	signal.Ignore(os.Interrupt)
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	unit := filepath.Base(folder)
	if !slices.ContainsFunc(layers.All, func(layer layers.Layer) bool { return layer.Folder == unit }) {
		unit = ""
	}
	trace, err := os.OpenFile(s.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer trace.Close()
	return pass(os.Stdin, os.Stdout, trace, unit)
}

// Lines of the trace that no tool prints.
const (
	eventStart = "terragrunt starts"
	eventEnd   = "terragrunt ended"
)

func pass(from io.Reader, to, trace io.Writer, unit string) error {
	note := func(text string) {
		data, err := json.Marshal(line{Time: time.Now(), Unit: unit, Text: strings.TrimSpace(text)})
		if err == nil {
			_, _ = trace.Write(append(data, '\n')) // a hole in the trace is seen by who reads it
		}
	}
	note(eventStart)
	defer note(eventEnd)
	reader := bufio.NewReader(from)
	for {
		text, err := reader.ReadString('\n')
		if text != "" {
			_, _ = io.WriteString(to, text) // nobody is there to be told
			var parsed struct {
				Message string `json:"msg"`
			}
			if json.Unmarshal([]byte(text), &parsed) != nil || parsed.Message == "" {
				parsed.Message = text
			}
			note(parsed.Message)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
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
