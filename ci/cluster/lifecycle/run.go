package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Files of a run's folder.
const (
	eventsFile = "events.jsonl"
	logFolder  = "log" // the tools' full output, a file for each layer
)

// run is the record of one command on a cluster.
type run struct {
	folder  string
	command string
	began   time.Time
	log     *timeline.Log
	unlock  func() error
	// redactor takes the secrets out of everything that is shown or kept; they are added when they are known.
	redactor *redact.Redactor
	logs     *logs // nil until Terragrunt runs
}

// holder says who holds the lock; it is for a person, the lock itself is the kernel's.
type holder struct {
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
}

// begin takes the cluster's lock and opens the record. A second command on the same cluster is refused at once.
func (c *Cluster) begin(command string) (*run, error) {
	unlock, err := filelock.Try(filepath.Join(c.State, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("cluster %s is locked by %s: wait for it to end, or interrupt it", c.description.Name, c.holder())
	}
	if err != nil {
		return nil, err
	}
	r := &run{command: command, began: time.Now().UTC(), unlock: unlock, redactor: redact.New()}
	host, _ := os.Hostname()
	data, err := json.Marshal(holder{Command: command, Since: r.began, Host: host, PID: os.Getpid()})
	if err == nil {
		err = os.WriteFile(c.holderFile(), data, 0o600)
	}
	id := r.began.Format("20060102T150405.000Z") + "-" + command
	r.folder = filepath.Join(c.State, "runs", id)
	if err == nil {
		err = os.MkdirAll(filepath.Join(r.folder, logFolder), 0o700)
	}
	if err == nil {
		r.log, err = timeline.Open(filepath.Join(r.folder, eventsFile), timeline.Redacting(r.redactor))
	}
	if err == nil {
		err = r.log.Append(timeline.Event{Time: r.began, Kind: timeline.KindRun, Cluster: c.description.Name, Name: command, Phase: timeline.PhaseStart})
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return r, nil
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

func (r *run) events() string { return filepath.Join(r.folder, eventsFile) }

// end closes the record and frees the lock.
func (r *run) end() error { return errors.Join(r.log.Close(), r.unlock()) }

// lastRun is the folder of the latest run; their names sort by time.
func (c *Cluster) lastRun() (string, error) {
	entries, err := os.ReadDir(filepath.Join(c.State, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("cluster %s has no record of a run: create it first", c.description.Name)
	}
	return filepath.Join(c.State, "runs", entries[len(entries)-1].Name()), nil
}
