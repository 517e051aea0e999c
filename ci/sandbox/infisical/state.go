package infisical

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"
	"github.com/google/uuid"
)

// state is everything that outlives a restart.
type state struct {
	SigningKey []byte               `json:"signingKey"`
	Revoked    map[string]time.Time `json:"revoked"` // id of a revoked token: when it expires anyway
	Projects   map[string]*project  `json:"projects"`
}

type project struct {
	Slug         string                  `json:"slug"`
	Environments map[string]*environment `json:"environments"`
	Requests     []*request              `json:"requests,omitempty"` // changes that wait for an approval, or did
}

type environment struct {
	Folders map[string]*folder `json:"folders"` // by path, "/" always there
}

type folder struct {
	ID      string             `json:"id"`
	Version int                `json:"version"`
	Created time.Time          `json:"created"`
	Updated time.Time          `json:"updated"`
	Secrets map[string]*secret `json:"secrets"`
}

type secret struct {
	ID      string    `json:"id"`
	Value   string    `json:"value"`
	Comment string    `json:"comment"`
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// store keeps the state as snapshots that never change once published, so that readers take no lock. A change that cannot
// be written to the file has not happened.
type store struct {
	file    string // empty: memory only
	current atomic.Pointer[state]
	mu      sync.Mutex // one change at a time
	saved   []byte     // current, encoded
}

func openStore(file string, seed Seed) (*store, error) {
	s := &store{file: file}
	if file != "" {
		data, err := os.ReadFile(file)
		switch {
		case err == nil:
			s.saved = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the state of the simulated Infisical: %w", err)
		}
	}
	if s.saved == nil {
		key := make([]byte, 32)
		rand.Read(key)
		empty, err := json.Marshal(state{SigningKey: key, Revoked: map[string]time.Time{}, Projects: map[string]*project{}})
		if err != nil {
			return nil, err
		}
		s.saved = empty
	}
	if err := json.Unmarshal(s.saved, new(state)); err != nil {
		return nil, fmt.Errorf("%s is not a state of the simulated Infisical, remove it to start from the seed: %w", file, err)
	}
	if err := s.change(func(st *state) error { return st.plant(seed) }); err != nil {
		return nil, err
	}
	return s, nil
}

// change runs edit on a copy and publishes it when the file holds it.
func (s *store) change(edit func(*state) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := new(state)
	if err := json.Unmarshal(s.saved, next); err != nil {
		return err
	}
	if err := edit(next); err != nil {
		return err
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if s.file != "" {
		err := os.MkdirAll(filepath.Dir(s.file), 0o700)
		if err == nil {
			err = renameio.WriteFile(s.file, data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("the state of the simulated Infisical: %w", err)
		}
	}
	s.saved = data
	s.current.Store(next)
	return nil
}

// plant adds the projects that the state does not have yet. What a project already holds stays: the seed must not bring
// back what was deleted or undo what was updated.
func (st *state) plant(seed Seed) error {
	for _, p := range seed.Projects {
		if p.ID == "" || p.Slug == "" {
			return fmt.Errorf("a project of the simulated Infisical has id %q and slug %q: both are needed", p.ID, p.Slug)
		}
		if st.Projects[p.ID] != nil {
			continue
		}
		st.Projects[p.ID] = &project{Slug: p.Slug, Environments: map[string]*environment{}}
		for slug, folders := range p.Environments {
			for folderPath, secrets := range folders {
				f := st.Projects[p.ID].environment(slug).make(folderPath)
				for name, value := range secrets {
					f.Secrets[name] = newSecret(value)
				}
			}
		}
	}
	return nil
}

// project finds a project by its id or slug.
func (st *state) project(idOrSlug string) (string, *project) {
	if p := st.Projects[idOrSlug]; p != nil {
		return idOrSlug, p
	}
	for id, p := range st.Projects {
		if p.Slug == idOrSlug {
			return id, p
		}
	}
	return "", nil
}

// environment finds or makes an environment.
func (p *project) environment(slug string) *environment {
	if p.Environments[slug] == nil {
		e := &environment{Folders: map[string]*folder{}}
		e.make("/")
		p.Environments[slug] = e
	}
	return p.Environments[slug]
}

// folder is nil where the project has no such environment or folder.
func (p *project) folder(environment, folderPath string) *folder {
	e := p.Environments[environment]
	if e == nil {
		return nil
	}
	return e.Folders[cleanPath(folderPath)]
}

// make finds or makes a folder and those above it.
func (e *environment) make(folderPath string) *folder {
	folderPath = cleanPath(folderPath)
	if f := e.Folders[folderPath]; f != nil {
		return f
	}
	if folderPath != "/" {
		e.make(path.Dir(folderPath))
	}
	now := time.Now().UTC()
	f := &folder{ID: uuid.NewString(), Version: 1, Created: now, Updated: now, Secrets: map[string]*secret{}}
	e.Folders[folderPath] = f
	return f
}

// under lists the paths at and below a folder, in order.
func (e *environment) under(folderPath string) []string {
	folderPath = cleanPath(folderPath)
	prefix := strings.TrimSuffix(folderPath, "/") + "/"
	var paths []string
	for p := range e.Folders {
		if p == folderPath || strings.HasPrefix(p, prefix) {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, cmp.Compare)
	return paths
}

func cleanPath(folderPath string) string { return path.Clean("/" + folderPath) }

func newSecret(value string) *secret {
	now := time.Now().UTC()
	return &secret{ID: uuid.NewString(), Value: value, Version: 1, Created: now, Updated: now}
}

func (s *secret) update(value string) {
	s.Value = value
	s.Version++
	s.Updated = time.Now().UTC()
}
