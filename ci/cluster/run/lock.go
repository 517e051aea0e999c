package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/timeline"
)

// unlockTime is how long a run that has ended, or was interrupted, may take to free its lock in the store.
const unlockTime = time.Minute

// lockStates locks the cluster for a run, and puts right what an earlier one left: locks, and states that it could not write. Both are
// noted as steps.
func (c *Cluster) lockStates(ctx context.Context, record *Record, access *Access) error {
	states, err := c.States(access)
	if err != nil {
		return err
	}
	me, err := c.Identity(access.Values)
	if err != nil {
		return err
	}
	if err := states.Belongs(ctx, me, ""); err != nil {
		return err
	}
	left, err := states.LeftLocal()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("the states of %s are in this engine's volume, and cluster.yaml has them in S3 now: move them with dagger call state-migrate --cluster %s --from local --confirm %[2]s",
			strings.Join(left, ", "), c.Description.Name)
	}
	record.free, err = c.TakeStates(ctx, states, me, record.Command, func(dead state.Lock) error {
		return c.mended(record, "lock "+dead.ID, fmt.Sprintf("%s, and that process is dead", dead))
	})
	if err != nil {
		return err
	}
	return c.putBack(ctx, record, states)
}

// TakeStates locks the cluster for other machines, which share the store of its states but not the kernel's lock
// on this one's folder; the caller holds that one. Before, it makes sure that they are this cluster's, me, and
// records that. freed is told of what a killed process of this folder had left locked. free is never nil without
// an error.
func (c *Cluster) TakeStates(ctx context.Context, states state.Store, me state.Identity, command string,
	freed func(state.Lock) error) (free func() error, err error) {
	if c.Owner != "" {
		err = states.Belongs(ctx, me, c.Owner)
	} else {
		err = states.Own(ctx, me, time.Now())
	}
	if err != nil {
		return nil, err
	}
	folder, err := c.folderID()
	if err != nil {
		return nil, err
	}
	mine := state.Lock{ID: rand.Text(), Operation: command, Who: who(), Created: time.Now().UTC(), Folder: folder}
	if err := states.Take(ctx, mine, freed); err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
		defer cancel()
		if err := states.Free(ctx, mine); err != nil {
			return fmt.Errorf("the cluster stays locked for other machines, until the next run from here: %w", err)
		}
		return nil
	}, nil
}

// putBack writes the states that an earlier run could not, and notes each as a step.
func (c *Cluster) putBack(ctx context.Context, record *Record, states state.Store) error {
	for _, layer := range layers.All {
		did, err := states.PutBack(ctx, layer.Name)
		if err == nil && did != "" {
			err = c.mended(record, "state of layer "+layer.Name, did)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mended notes what of an earlier run was put right before this one begins.
func (c *Cluster) mended(record *Record, step, what string) error {
	event := timeline.Event{Kind: timeline.KindStep, Cluster: c.Description.Name, Layer: layers.Secrets, Name: step, Phase: timeline.PhaseStart}
	err := record.Log.Append(event)
	event.Phase, event.Cause = timeline.PhaseWaiting, what
	err = errors.Join(err, record.Log.Append(event))
	event.Phase, event.Result, event.Cause = timeline.PhaseEnd, timeline.ResultOK, ""
	return errors.Join(err, record.Log.Append(event))
}

// folderID tells this folder of states from every other one.
func (c *Cluster) folderID() (string, error) {
	name := filepath.Join(c.State, "id")
	data, err := os.ReadFile(name)
	if id := strings.TrimSpace(string(data)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := rand.Text()
	return id, renameio.WriteFile(name, []byte(id+"\n"), 0o600)
}

// who is this process, for a person.
func who() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}
