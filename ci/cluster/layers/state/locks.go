package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state/objects"
)

// A cluster whose states are in S3 can be worked on from several machines, and a process that is killed leaves its
// locks there. castle holds one lock for the whole run, which says from which folder of states it was taken: the
// kernel's lock on that folder tells whether its holder is alive. Under it castle takes OpenTofu's own lock on
// each state as well (use_lockfile: terraform.tfstate.tflock), so that a person who runs OpenTofu alone is kept
// out, and runs OpenTofu without locks. So castle gives each of these locks its ID, which names the run, and no
// other lock is ever taken for a dead run's: not by its time, and not by its user or host, which are the same in
// every container.
const (
	runLock    = "castle.lock"
	probe      = "castle.probe"   // there for as long as conditions are tried
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
	// Former are the IDs of killed runs of that folder whose locks on the layers may still be there; of castle's
	// own only.
	Former []string `json:"Former,omitempty"`

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

// onLayer is the lock on a layer's state that a run takes under its own.
func (l Lock) onLayer(layer string) Lock {
	return Lock{ID: l.ID + "-" + layer, Layer: layer, Operation: l.Operation, Who: l.Who, Created: l.Created,
		name: path.Join(layer, layerLocks)}
}

// isOf tells whether a lock on a layer's state was taken by one of these runs.
func (l Lock) isOf(runs []string) bool {
	return l.Layer != "" && slices.ContainsFunc(runs, func(id string) bool {
		return l.ID == Lock{ID: id}.onLayer(l.Layer).ID
	})
}

// runs are the runs that a lock of castle's own stands for.
func (l Lock) runs() []string { return append([]string{l.ID}, l.Former...) }

// Locks are all that are held. Those on the states which belong to castle's own lock are not listed beside it.
func (s Store) Locks(ctx context.Context) ([]Lock, error) {
	held, err := s.held(ctx)
	if len(held) == 0 || held[0].Layer != "" {
		return held, err
	}
	runs := held[0].runs()
	return slices.DeleteFunc(held, func(lock Lock) bool { return lock.isOf(runs) }), err
}

// held are all locks, castle's own first.
func (s Store) held(ctx context.Context) ([]Lock, error) {
	if s.Bucket == nil {
		return nil, nil // the kernel frees those of a folder
	}
	var held []Lock
	names := []Lock{{name: runLock}}
	for _, layer := range layers.All {
		names = append(names, Lock{}.onLayer(layer.Name))
	}
	for _, known := range names {
		data, version, err := s.vault().get(ctx, known.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock := Lock{Layer: known.Layer, name: known.name, version: version}
		if err := json.Unmarshal(data, &lock); err != nil || lock.ID == "" {
			return nil, fmt.Errorf("the object %s is no lock: look at it, and remove it by hand if nothing runs", path.Join(s.Cluster.Name, lock.name))
		}
		held = append(held, lock)
	}
	return held, nil
}

// Take locks the cluster and all its states for a run of mine.Folder, whose folder the caller has locked: a lock
// of that folder is a dead run's, and so are those on the states that this run, or one before it, had taken. freed
// is told of castle's own. It fails with *Locked if somebody else holds any lock.
func (s Store) Take(ctx context.Context, mine Lock, freed func(Lock) error) error {
	if s.Bucket == nil {
		return nil
	}
	held, err := s.held(ctx)
	if err != nil {
		return err
	}
	var dead Lock
	if len(held) > 0 && held[0].name == runLock && held[0].Folder == mine.Folder {
		dead = held[0]
	}
	left := map[string]Lock{} // of dead runs, by layer
	if dead.ID != "" {
		// A run that is killed right after its own lock is written has taken nothing over yet, and the next one
		// has to know what belongs to the dead.
		mine.Former = []string{dead.ID}
		for _, lock := range held {
			if lock.isOf(dead.runs()) {
				left[lock.Layer] = lock
			}
		}
		for _, id := range dead.Former {
			locks := slices.Collect(maps.Values(left))
			if slices.ContainsFunc(locks, func(lock Lock) bool { return lock.isOf([]string{id}) }) {
				mine.Former = append(mine.Former, id)
			}
		}
	}
	alive := slices.DeleteFunc(slices.Clone(held), func(lock Lock) bool {
		return lock.name == runLock && dead.ID != "" || lock.isOf(dead.runs())
	})
	if len(alive) > 0 {
		locks, err := s.Locks(ctx)
		return errors.Join(err, s.locked(slices.DeleteFunc(locks, func(lock Lock) bool { return lock.ID == dead.ID })))
	}
	data, err := s.write(ctx, mine, runLock, dead.version)
	if errors.Is(err, objects.ErrChanged) {
		return fmt.Errorf("somebody else has begun to work on cluster %s at this moment: try again when they are done", s.Cluster.Name)
	} else if err != nil {
		return err
	}
	if err := s.Bucket.CheckConditions(ctx, path.Join(s.Cluster.Name, runLock), data); err != nil {
		return errors.Join(err, s.Free(ctx, mine))
	}
	for _, layer := range layers.All {
		lock := mine.onLayer(layer.Name)
		if _, err := s.write(ctx, lock, lock.name, left[layer.Name].version); errors.Is(err, objects.ErrChanged) {
			// A person has begun to work on the layer since the locks were read.
			now, readErr := s.held(ctx)
			now = slices.DeleteFunc(now, func(lock Lock) bool { return lock.name == runLock || lock.isOf(mine.runs()) })
			return errors.Join(s.locked(now), readErr, s.Free(ctx, mine))
		} else if err != nil {
			return err
		}
	}
	if dead.ID != "" {
		return freed(dead)
	}
	return nil
}

// CheckStore makes sure, before anything is locked, that the store obeys conditions.
func (s Store) CheckStore(ctx context.Context) (err error) {
	data := []byte(time.Now().UTC().Format(time.RFC3339Nano))
	switch err := s.vault().put(ctx, probe, data, ""); {
	case errors.Is(err, objects.ErrChanged):
		return nil // somebody else looks at this moment, and was not overwritten
	case err != nil:
		return err
	}
	err = s.Bucket.CheckConditions(ctx, path.Join(s.Cluster.Name, probe), data)
	return errors.Join(err, s.vault().delete(ctx, probe, ""))
}

// locked is the error about these locks; they may have been freed meanwhile.
func (s Store) locked(locks []Lock) error {
	if len(locks) == 0 {
		return fmt.Errorf("somebody else has worked on cluster %s at this moment: try again", s.Cluster.Name)
	}
	return &Locked{s.Cluster.Name, locks}
}

// write writes a lock where the object still has this version, "" for none.
func (s Store) write(ctx context.Context, lock Lock, name, version string) ([]byte, error) {
	data, err := json.Marshal(lock)
	if err != nil {
		return nil, err
	}
	return data, s.vault().put(ctx, name, data, version)
}

// Free gives the cluster free at the end of the run that took the lock.
func (s Store) Free(ctx context.Context, mine Lock) error {
	if s.Bucket == nil {
		return nil
	}
	held, err := s.held(ctx)
	if err != nil {
		return err
	}
	if len(held) == 0 || held[0].ID != mine.ID {
		return nil // somebody has unlocked it by hand
	}
	return s.remove(ctx, held[0], held)
}

// Unlock removes the lock of the given ID, whoever holds it; with castle's own those that it holds on the states.
func (s Store) Unlock(ctx context.Context, id string) (Lock, error) {
	if s.Bucket == nil {
		return Lock{}, fmt.Errorf("the states of cluster %s are in a folder of the engine, where no lock outlives its process", s.Cluster.Name)
	}
	held, err := s.held(ctx)
	if err != nil {
		return Lock{}, err
	}
	for _, lock := range held {
		if lock.ID == id {
			return lock, s.remove(ctx, lock, held)
		}
	}
	shown, err := s.Locks(ctx)
	if err != nil {
		return Lock{}, err
	}
	if len(shown) == 0 {
		return Lock{}, fmt.Errorf("nothing of cluster %s is locked", s.Cluster.Name)
	}
	var known []error
	for _, lock := range shown {
		known = append(known, errors.New(lock.String()))
	}
	return Lock{}, fmt.Errorf("no lock has the ID %q; %w", id, errors.Join(known...))
}

// remove removes a lock as it was read, and with castle's own, which goes last, those on the states that were
// taken under it.
func (s Store) remove(ctx context.Context, lock Lock, held []Lock) error {
	if lock.name == runLock {
		for _, other := range held {
			if !other.isOf(lock.runs()) {
				continue
			}
			if err := s.vault().delete(ctx, other.name, other.version); err != nil {
				return err
			}
		}
	}
	return s.vault().delete(ctx, lock.name, lock.version)
}
