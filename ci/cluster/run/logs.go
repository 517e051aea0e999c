package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// logs keeps what the tools print, redacted: a file for each layer, and in memory what is needed to tell why one failed.
type logs struct {
	folder string

	mutex     sync.Mutex // layers run at the same time
	files     map[string]*os.File
	causes    map[string]*Cause
	unchanged map[string]bool // layers whose last apply had nothing to do
	err       error
}

func newLogs(folder string) *logs {
	return &logs{folder: folder, files: map[string]*os.File{}, causes: map[string]*Cause{}, unchanged: map[string]bool{}}
}

// write takes a message of a unit; what is Terragrunt's own goes to terragrunt.log.
func (l *logs) write(unit, message string) {
	layer := "terragrunt"
	if unit != "" {
		layer = layers.OfFolder(unit).Name
	}
	message = redact.Text(message)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.causes[layer] == nil {
		l.causes[layer] = &Cause{}
	}
	l.causes[layer].Add(message)
	if strings.Contains(message, "Apply complete!") {
		l.unchanged[layer] = strings.Contains(message, unchanged)
	}
	file := l.files[layer]
	if file == nil {
		var err error
		file, err = os.OpenFile(filepath.Join(l.folder, layer+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			l.err = errors.Join(l.err, err)
			return
		}
		l.files[layer] = file
	}
	if _, err := file.WriteString(message + "\n"); err != nil {
		l.err = errors.Join(l.err, err)
	}
}

func (l *logs) close() error {
	for _, file := range l.files {
		l.err = errors.Join(l.err, file.Close())
	}
	return l.err
}

// unchanged is what OpenTofu says at the end of an apply that had nothing to do.
const unchanged = "Resources: 0 added, 0 changed, 0 destroyed"

// judge marks the layers in which nothing was changed, neither by OpenTofu nor by a step beside it.
func (l *logs) judge(events []timeline.Event) []timeline.Event {
	if l == nil {
		return events
	}
	acted := map[string]bool{}
	for _, event := range events {
		if event.Kind == timeline.KindStep && event.Phase == timeline.PhaseEnd && event.Result != timeline.ResultUnchanged {
			acted[event.Layer] = true
		}
	}
	judged := slices.Clone(events)
	for i, event := range judged {
		if event.Kind == timeline.KindLayer && event.Result == timeline.ResultOK && l.unchanged[event.Layer] && !acted[event.Layer] {
			judged[i].Result = timeline.ResultUnchanged
		}
	}
	return judged
}

// cause is a layer's failure in the tool's own words.
func (l *logs) cause(layer string) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.causes[layer] == nil {
		return ""
	}
	return l.causes[layer].Text()
}
