package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Files of a run's folder.
const (
	runsFolder = "runs" // in the state folder: a folder for each run, whose names sort by time
	eventsFile = "events.jsonl"
	LogFolder  = "log" // the tools' full output, a file for each layer
)

// Record is the record of one command on a cluster.
type Record struct {
	Folder  string
	Command string
	Log     *timeline.Log

	began  time.Time
	unlock func() error
	// free gives free what SecretsLayer has locked in the store of the states, where other machines see it.
	free func() error
	logs *logs // nil until Terragrunt runs
}

// holder says who holds the lock; it is for a person, the lock itself is the kernel's.
type holder struct {
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
}

// Lock takes the kernel's lock on the folder of states, and is refused at once where somebody has it.
func (c *Cluster) Lock() (unlock func() error, err error) {
	name := filepath.Join(c.State, "lock")
	unlock, err = filelock.TryWithChildren(name)
	if errors.Is(err, filelock.ErrHeld) {
		unlock, err = lockLeft(name)
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("cluster %s is locked by %s: wait for it to end, or interrupt it", c.Description.Name, c.holder())
	}
	return unlock, err
}

// begin takes the cluster's lock and opens the record. A second command on the same cluster is refused at once.
func (c *Cluster) begin(command string) (*Record, error) {
	unlock, err := c.Lock()
	if err != nil {
		return nil, err
	}
	r := &Record{Command: command, began: time.Now().UTC(), unlock: unlock}
	host, _ := os.Hostname()
	data, err := json.Marshal(holder{Command: command, Since: r.began, Host: host, PID: os.Getpid()})
	if err == nil {
		err = os.WriteFile(c.holderFile(), data, 0o600)
	}
	c.prune()
	id := r.began.Format("20060102T150405.000Z") + "-" + command
	r.Folder = filepath.Join(c.State, runsFolder, id)
	if err == nil {
		err = os.MkdirAll(filepath.Join(r.Folder, LogFolder), 0o700)
	}
	if err == nil {
		r.Log, err = timeline.Open(filepath.Join(r.Folder, eventsFile))
	}
	if err == nil {
		err = r.Log.Append(timeline.Event{Time: r.began, Kind: timeline.KindRun, Cluster: c.Description.Name, Name: command, Phase: timeline.PhaseStart})
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return r, nil
}

// keptRuns is how many records are kept before the new one: of a cluster that a timer creates anew each hour, two days'.
const keptRuns = 50

// prune removes the oldest records. What cannot be removed stays: that is no reason to refuse a run.
func (c *Cluster) prune() {
	folder := filepath.Join(c.State, runsFolder)
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) <= keptRuns {
		return
	}
	for _, entry := range entries[:len(entries)-keptRuns] {
		_ = os.RemoveAll(filepath.Join(folder, entry.Name()))
	}
}

// ranBefore tells whether another run than the one that goes on has left a record.
func (c *Cluster) ranBefore() bool {
	entries, err := os.ReadDir(filepath.Join(c.State, runsFolder))
	return err == nil && len(entries) > 1
}

func (c *Cluster) holderFile() string { return filepath.Join(c.State, "holder.json") }

func (c *Cluster) holder() string {
	data, err := os.ReadFile(c.holderFile())
	var h holder
	if err != nil || json.Unmarshal(data, &h) != nil {
		return "another command"
	}
	return fmt.Sprintf("%s, which runs since %s (process %d on %s)", h.Command, h.Since.Format(time.TimeOnly+" MST"), h.PID, h.Host)
}

// Events is the file of the event log.
func (r *Record) Events() string { return filepath.Join(r.Folder, eventsFile) }

// end closes the record and frees the locks.
func (r *Record) end() error {
	var err error
	if r.free != nil {
		err = r.free()
	}
	return errors.Join(err, r.Log.Close(), r.unlock())
}

// LastRun is the folder with the record of the latest run; their names sort by time.
func (c *Cluster) LastRun() (string, error) {
	if err := c.Load(); err != nil {
		return "", err
	}
	folder := state.Store{Cluster: c.Description, Folder: c.State}
	if err := folder.RecordsAreOf(context.Background(), state.OriginOf(c.Description, c.Folder)); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(filepath.Join(c.State, runsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("cluster %s has no record of a run: create it first", c.Description.Name)
	}
	return filepath.Join(c.State, runsFolder, entries[len(entries)-1].Name()), nil
}

// writeTimeline makes the reports of a run out of its events.
func (c *Cluster) writeTimeline(record *Record) (timeline.Timeline, error) {
	events, err := timeline.Read(record.Events())
	if err != nil {
		return timeline.Timeline{}, err
	}
	var options []timeline.Option
	if c.Scaled {
		options = append(options, timeline.Scaled())
	}
	made := timeline.Build(record.logs.judge(events), layers.Edges(), options...)
	for name, render := range map[string]func() ([]byte, error){"timeline.json": made.JSON, "timeline.md": made.Markdown, "timeline.html": made.HTML} {
		data, err := render()
		if err == nil {
			err = os.WriteFile(filepath.Join(record.Folder, name), data, 0o644)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}
