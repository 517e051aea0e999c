package proxmox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keptTasks is how many finished tasks are remembered.
const keptTasks = 400

// Exit texts that are not a task's own error.
const (
	exitOK          = "OK"
	exitUnexpected  = "unexpected status" // the worker is gone and has left no last line
	exitInterrupted = "received interrupt"
)

var (
	errPowerCut    = errors.New("the host lost power")
	errInterrupted = errors.New(exitInterrupted)
)

// task is one asynchronous work. Its UPID names the worker, its type, what it works on and for whom.
type task struct {
	UPID  string    `json:"upid"`
	Node  string    `json:"node"`
	PID   int       `json:"pid"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end,omitzero"`
	Type  string    `json:"type"`
	ID    string    `json:"id"`
	User  string    `json:"user"` // with !token
	Exit  string    `json:"exit,omitempty"`
	Lines []string  `json:"lines,omitempty"`

	cancel context.CancelCauseFunc
}

func (t *task) running() bool { return t.Exit == "" }

// worker is what a task's function is given.
type worker struct {
	server *Server
	task   *task
}

// log adds a line to the task's log. It is on disk with the next change.
func (w worker) log(format string, arguments ...any) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.task.Lines = append(w.task.Lines, fmt.Sprintf(format, arguments...))
}

// begin adds a running task to the state; s.mu is held, and the caller saves and then calls work.
func (s *Server) begin(kind, node string, id int, user string) *task {
	s.state.PID++
	now := time.Now()
	t := &task{Node: node, PID: s.state.PID, Start: now, Type: kind, ID: strconv.Itoa(id), User: user}
	ticks := uint32(time.Since(s.booted).Milliseconds() / 10)
	t.UPID = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", node, t.PID, ticks, now.Unix(), kind, t.ID, user)
	s.state.Tasks = append(s.state.Tasks, t)
	for i := 0; len(s.state.Tasks) > keptTasks && i < len(s.state.Tasks); {
		if s.state.Tasks[i].running() {
			i++
			continue
		}
		s.state.Tasks = slices.Delete(s.state.Tasks, i, i+1)
	}
	return t
}

// work runs a begun task in the background. After a power cut nothing more is written: the next start finds the task
// running and ends it.
func (s *Server) work(t *task, do func(ctx context.Context, w worker) error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.mu.Lock()
	t.cancel = cancel
	s.mu.Unlock()
	s.workers.Go(func() {
		defer cancel(nil)
		err := do(ctx, worker{server: s, task: t})
		if errors.Is(context.Cause(ctx), errPowerCut) {
			return
		}
		if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
			err = errInterrupted
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t.End, t.Exit = time.Now(), exitOK
		if err != nil {
			t.Exit = err.Error()
			t.Lines = append(t.Lines, "TASK ERROR: "+t.Exit)
		} else {
			t.Lines = append(t.Lines, "TASK OK")
		}
		if err := s.save(); err != nil {
			t.Exit = err.Error()
		}
	})
}

// launch begins a task and runs it.
func (s *Server) launch(kind string, g *guest, user string, do func(ctx context.Context, w worker) error) (any, error) {
	var t *task
	err := s.change(func() error {
		t = s.begin(kind, g.Node, g.ID, user)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.work(t, do)
	return t.UPID, nil
}

// endLostTasks ends the tasks that a power cut interrupted. What they locked stays locked, as on a real host.
func (s *state) endLostTasks(now time.Time) {
	for _, t := range s.Tasks {
		if t.running() {
			t.End, t.Exit = now, exitUnexpected
			t.Lines = append(t.Lines, "TASK ERROR: "+exitUnexpected)
		}
	}
}

// describe is a task as lists and its status show it.
func (t *task) describe() map[string]any {
	user, token, hasToken := strings.Cut(t.User, "!")
	shown := map[string]any{
		"upid": t.UPID, "node": t.Node, "pid": t.PID, "starttime": t.Start.Unix(), "type": t.Type, "id": t.ID, "user": user,
	}
	if start, err := strconv.ParseUint(strings.Split(t.UPID, ":")[3], 16, 32); err == nil {
		shown["pstart"] = start
	}
	if hasToken {
		shown["tokenid"] = token
	}
	return shown
}

// taskOf finds the task of a request's path; s.mu is held.
func (s *Server) taskOf(r *request) (*task, error) {
	upid := r.http.PathValue("upid")
	for _, t := range s.state.Tasks {
		if t.UPID == upid {
			if t.Node != r.http.PathValue("node") {
				return nil, invalid(map[string]string{"upid": "task is of another node"})
			}
			return t, nil
		}
	}
	if parts := strings.Split(upid, ":"); len(parts) < 9 || parts[0] != "UPID" {
		return nil, invalid(map[string]string{"upid": fmt.Sprintf("unable to parse worker upid '%s'", upid)})
	}
	return nil, internal("no such task")
}

func (s *Server) taskStatus(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.taskOf(r)
	if err != nil {
		return nil, err
	}
	shown := t.describe()
	shown["status"] = "running"
	if !t.running() {
		shown["status"], shown["exitstatus"] = "stopped", t.Exit
	}
	return shown, nil
}

func (s *Server) taskLog(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.taskOf(r)
	if err != nil {
		return nil, err
	}
	start, limit := positive(r.params.Get("start"), 0), positive(r.params.Get("limit"), 50)
	lines := []map[string]any{}
	for i, line := range t.Lines {
		if i >= start && (limit == 0 || i < start+limit) {
			lines = append(lines, map[string]any{"n": i + 1, "t": line})
		}
	}
	if len(t.Lines) == 0 {
		lines = append(lines, map[string]any{"n": 1, "t": "no content"})
	}
	return page{data: lines, total: len(t.Lines)}, nil
}

func (s *Server) taskStop(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.taskOf(r)
	if err != nil {
		return nil, err
	}
	if t.running() && t.cancel != nil {
		t.cancel(errInterrupted)
	}
	return nil, nil
}

// taskList is the newest first; a node's list has the finished ones only unless its source is "all" or "active".
func (s *Server) taskList(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := r.http.PathValue("node")
	source := r.params.Get("source")
	list := []map[string]any{}
	// Those of all users are for who has this privilege. A token's own are left out, too: their user is compared without the token's
	// name (PVE/API2/Cluster.pm of pve-manager 8.4, tasks).
	if node == "" && !s.acl.has("/", "Sys.Audit") {
		return list, nil
	}
	for _, t := range slices.Backward(s.state.Tasks) {
		if node != "" {
			if t.Node != node || (t.running() && source != "all" && source != "active") || (!t.running() && source == "active") {
				continue
			}
			if id := r.params.Get("vmid"); id != "" && id != t.ID {
				continue
			}
		}
		shown := t.describe()
		if !t.running() {
			shown["endtime"], shown["status"] = t.End.Unix(), t.Exit
		}
		list = append(list, shown)
	}
	if node == "" {
		return list, nil
	}
	total := len(list)
	start := min(positive(r.params.Get("start"), 0), total)
	return page{data: list[start:min(total, start+positive(r.params.Get("limit"), 50))], total: total}, nil
}
