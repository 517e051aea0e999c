package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state/objects"
)

// A cluster whose states are in S3 can be worked on from several machines, and a process that is killed there leaves its locks.
// Two kinds are in the bucket. OpenTofu's own, one beside each state (use_lockfile: terraform.tfstate.tflock), says who took it, but
// not from which of many containers of the same name. So castle holds one of its own for the whole run, which says from which folder
// of states. The kernel's lock on that folder then tells whether the holder is alive.
const (
	runLock    = "castle.lock"
	layerLocks = file + ".tflock" // source: OpenTofu v1.12, internal/backend/remote-state/s3/client.go, lockFileSuffix
)

// Lock is a lock in the bucket.
type Lock struct {
	ID string `json:"ID"`
	// Layer is the layer whose state it is on, "" for castle's own.
	Layer string `json:"-"`
	// Operation is the command, such as create, or OpenTofu's name for what it does.
	Operation string `json:"Operation"`
	// Who is a process or a user, and the host.
	Who     string    `json:"Who"`
	Created time.Time `json:"Created"`
	// Folder is the id of the folder of states from which castle took it.
	Folder string `json:"Folder,omitempty"`
	// Held is since when that folder has held the cluster without a break, over runs that were killed; of castle's own only.
	Held time.Time `json:"Held,omitzero"`

	name, version string
}

func (l Lock) String() string {
	what := "the cluster is"
	if l.Layer != "" {
		what = "the state of layer " + l.Layer + " is"
	}
	return fmt.Sprintf("%s locked by %s of %s since %s (ID %s)", what, l.Operation, l.Who, l.Created.UTC().Format(time.DateTime+" MST"), l.ID)
}

// Locked says that somebody else works on the cluster, or did and was killed.
type Locked struct {
	Cluster string
	Locks   []Lock
}

func (l *Locked) Error() string {
	var problems []error
	for _, lock := range l.Locks {
		problems = append(problems, errors.New(lock.String()))
	}
	return fmt.Sprintf("%v\nnothing was changed: wait for it to end; where nothing of it runs any more, "+
		"dagger call state-unlock --cluster %s --confirm %s", errors.Join(problems...), l.Cluster, l.Locks[0].ID)
}

// Locks are all that are held.
func (s Store) Locks(ctx context.Context) ([]Lock, error) {
	if s.Bucket == nil {
		return nil, nil // the kernel frees those of a folder
	}
	var held []Lock
	names := []Lock{{name: runLock}}
	for _, layer := range layers.All {
		names = append(names, Lock{Layer: layer.Name, name: path.Join(layer.Name, layerLocks)})
	}
	for _, lock := range names {
		data, version, err := s.vault().get(ctx, lock.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock.version = version
		if err := json.Unmarshal(data, &lock); err != nil || lock.ID == "" {
			return nil, fmt.Errorf("the object %s is no lock: look at it, and remove it by hand if nothing runs", path.Join(s.Cluster.Name, lock.name))
		}
		held = append(held, lock)
	}
	return held, nil
}

// Take locks the cluster for a run, for who holds the kernel's lock on its folder: what a run from the same folder left is that of
// a dead process, and freed is called with it. It is a *Locked where somebody else holds any lock.
func (s Store) Take(ctx context.Context, mine Lock, freed func(Lock) error) error {
	if s.Bucket == nil {
		return nil
	}
	held, err := s.Locks(ctx)
	if err != nil {
		return err
	}
	var dead Lock
	var alive []Lock
	for _, lock := range held {
		switch {
		case lock.name == runLock && lock.Folder == mine.Folder:
			dead = lock
		case dead.ID != "" && !lock.Created.Before(dead.Held):
			// Taken while this folder held the cluster, so by a dead process of it.
		default:
			alive = append(alive, lock)
		}
	}
	if len(alive) > 0 {
		return &Locked{s.Cluster.Name, alive}
	}
	// A run that is killed right after this line has freed nothing yet, and the next one has to know what belongs to the dead.
	if mine.Held = mine.Created; dead.ID != "" {
		mine.Held = dead.Held
	}
	data, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	if err := s.vault().put(ctx, runLock, data, dead.version); errors.Is(err, objects.ErrChanged) {
		return fmt.Errorf("somebody else has begun to work on cluster %s at this moment: try again when they are done", s.Cluster.Name)
	} else if err != nil {
		return err
	}
	if err := s.Bucket.CheckConditions(ctx, path.Join(s.Cluster.Name, runLock), data); err != nil {
		return errors.Join(err, s.vault().delete(ctx, runLock))
	}
	for _, lock := range held {
		if lock.name != runLock {
			if err := s.vault().delete(ctx, lock.name); err != nil {
				return err
			}
		}
		if err := freed(lock); err != nil {
			return err
		}
	}
	return nil
}

// Free gives the cluster free at the end of the run that took the lock. All its processes have ended, so that what they left locked
// is freed before.
func (s Store) Free(ctx context.Context, mine Lock) error {
	if s.Bucket == nil {
		return nil
	}
	held, err := s.Locks(ctx)
	if err != nil {
		return err
	}
	if len(held) == 0 || held[0].ID != mine.ID {
		return nil // somebody has unlocked it by hand
	}
	return s.remove(ctx, held[0], held)
}

// Unlock removes the lock of the given ID, whoever holds it; with castle's own those that OpenTofu took within that run.
func (s Store) Unlock(ctx context.Context, id string) (Lock, error) {
	if s.Bucket == nil {
		return Lock{}, fmt.Errorf("the states of cluster %s are in a folder of the engine, where no lock outlives its process", s.Cluster.Name)
	}
	held, err := s.Locks(ctx)
	if err != nil {
		return Lock{}, err
	}
	var known []error
	for _, lock := range held {
		if lock.ID == id {
			return lock, s.remove(ctx, lock, held)
		}
		known = append(known, errors.New(lock.String()))
	}
	if len(held) == 0 {
		return Lock{}, fmt.Errorf("nothing of cluster %s is locked", s.Cluster.Name)
	}
	return Lock{}, fmt.Errorf("no lock has the ID %q; %w", id, errors.Join(known...))
}

// remove removes a lock, and with castle's own, which goes last, what was taken under it.
func (s Store) remove(ctx context.Context, lock Lock, held []Lock) error {
	if lock.name == runLock {
		for _, other := range held {
			if other.name == runLock || other.Created.Before(lock.Held) {
				continue
			}
			if err := s.vault().delete(ctx, other.name); err != nil {
				return err
			}
		}
	}
	return s.vault().delete(ctx, lock.name)
}
