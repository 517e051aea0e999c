package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/tail"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
)

// variableAhead names the folder in which the run that brings machines up ahead, OpenTofu and the hook that would bring them up
// tell each other how far they are.
const variableAhead = "CASTLE_AHEAD"

// What is in that folder.
const (
	accountFile = "platform.json" // OpenTofu's own account of the apply, a line for each thing; root.hcl says the same
	appliedFile = "applied"       // the hook's word that all machines are there
	aheadLock   = "lock"          // held by the run while it works on the machines
	outcomeFile = "outcome.json"
)

// outcome is how it ended; where there is none, it did not end by itself.
type outcome struct {
	Failed string `json:"failed"` // why; empty: every machine is up, and etcd complete
}

// ahead is machines that come up while others are still made.
type ahead struct {
	folder string
	states state.Store
	ids    map[string]int // of the VMs, by node

	mutex sync.Mutex // the note of unfinished VMs is one file
	made  map[string]chan struct{}
}

// BringUpAhead brings machines up that are all made by an apply of the layer platform which is about to begin: each is configured as soon as
// it is there, and etcd is founded on the first control plane while others are still cloned. The layer's own hook then waits for the end of
// that. The function that it returns ends it, and is called when the apply has ended.
func (c *Cluster) BringUpAhead(ctx context.Context, record *Record, access *Access) (stop func() error, err error) {
	a := &ahead{states: c.StateFiles(access.Values), ids: map[string]int{}, made: map[string]chan struct{}{}}
	for _, node := range c.Description.Nodes {
		a.ids[node.Name], a.made[node.Name] = node.VMID, make(chan struct{})
	}
	if a.folder, err = os.MkdirTemp("", "castle-ahead-"); err != nil {
		return nil, err
	}
	unlock, err := filelock.Try(filepath.Join(a.folder, aheadLock))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(a.folder))
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	notes := notes{cluster: c.Description.Name, log: record.Log}
	wait.Go(func() { a.follow(ctx) })
	wait.Go(func() {
		machines := c.Hypervisor(access)
		defer machines.Close()
		options := talos.Options{Event: notes.machine, Made: a.await, UUID: machines.UUID}
		_, err := talos.Up(ctx, c.Description, access.Bundle, options)
		if err = errors.Join(err, notes.noted()); ctx.Err() == nil {
			err = a.tell(err)
		}
		_ = errors.Join(err, unlock()) // without an outcome the hook does it all itself
	})
	record.ahead = a.folder
	return func() error {
		cancel()
		wait.Wait()
		record.ahead = ""
		return os.RemoveAll(a.folder)
	}, nil
}

// await waits until a node's machine is made. From then on it holds data, and is no leftover any more.
func (a *ahead) await(ctx context.Context, node string) error {
	select {
	case <-a.made[node]:
	case <-ctx.Done():
		return ctx.Err()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.states.ForgetUnfinishedVM(ctx, a.ids[node])
}

// follow reads which machines are made, until all are. What cannot be read now may be later, and the hook has the last word.
func (a *ahead) follow(ctx context.Context) {
	account := tail.New(filepath.Join(a.folder, accountFile))
	defer account.Close()
	ticker := time.NewTicker(tail.Every)
	defer ticker.Stop()
	missing := len(a.made)
	told := func(node string) {
		made, is := a.made[node]
		if !is {
			return
		}
		select {
		case <-made: // already
		default:
			close(made)
			missing--
		}
	}
	for missing > 0 {
		lines, _ := account.Lines()
		for _, line := range lines {
			told(madeIn(line))
		}
		if _, err := os.Stat(filepath.Join(a.folder, appliedFile)); err == nil {
			for node := range a.made {
				told(node)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// madeIn is the node whose machine is made by a line of OpenTofu's account, empty in any other line: the hook messages of
// internal/command/views/json of OpenTofu v1.12.
func madeIn(line []byte) (node string) {
	var message struct {
		Type string `json:"type"`
		Hook struct {
			Action   string `json:"action"`
			Resource struct {
				Type string `json:"resource_type"`
				Name string `json:"resource_name"`
				Key  any    `json:"resource_key"`
			} `json:"resource"`
		} `json:"hook"`
	}
	if json.Unmarshal(line, &message) != nil || message.Type != "apply_complete" || message.Hook.Action != "create" {
		return ""
	}
	if resource := message.Hook.Resource; state.IsMachine(resource.Type, resource.Name) {
		node, _ = resource.Key.(string)
	}
	return node
}

// tell leaves word for the hook.
func (a *ahead) tell(err error) error {
	var ended outcome
	if err != nil {
		ended.Failed = redact.Text(err.Error())
	}
	data, err := json.Marshal(ended)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.folder, outcomeFile), data, 0o600)
}

// broughtUp waits where the run brings the machines up itself, and says how that ended; done is false where the hook has to.
func broughtUp(ctx context.Context, folder string) (done bool, err error) {
	if folder == "" {
		return false, nil
	}
	if err := os.WriteFile(filepath.Join(folder, appliedFile), nil, 0o600); err != nil {
		return false, err
	}
	unlock, err := filelock.Await(ctx, filepath.Join(folder, aheadLock), tail.Every, nil)
	if err != nil {
		return false, err
	}
	defer unlock()
	data, err := os.ReadFile(filepath.Join(folder, outcomeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var ended outcome
	if err == nil {
		err = json.Unmarshal(data, &ended)
	}
	if err != nil {
		return false, fmt.Errorf("how the machines came up: %w", err)
	}
	if ended.Failed != "" {
		return true, errors.New(ended.Failed)
	}
	return true, nil
}
