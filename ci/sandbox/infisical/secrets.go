package infisical

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// place is where a request looks: query parameters of a GET, the body of everything else.
type place struct {
	WorkspaceID   string `json:"workspaceId"`
	WorkspaceSlug string `json:"workspaceSlug"`
	ProjectSlug   string `json:"projectSlug"`
	Environment   string `json:"environment"`
	SecretPath    string `json:"secretPath"`
}

func queried(r *http.Request) place {
	q := r.URL.Query()
	return place{q.Get("workspaceId"), q.Get("workspaceSlug"), q.Get("projectSlug"), q.Get("environment"), q.Get("secretPath")}
}

// project finds what the place names in a state, if the identity may use it.
func (p place) project(st *state, who *identity) (string, *project, error) {
	name := p.WorkspaceID
	for _, slug := range []string{p.WorkspaceSlug, p.ProjectSlug} {
		if name == "" {
			name = slug
		}
	}
	if name == "" || p.Environment == "" {
		return "", nil, badRequest("Missing workspace id or environment")
	}
	id, found := st.project(name)
	if found == nil {
		return "", nil, notFound("Project with slug or id '%s' not found", name)
	}
	if id != who.project {
		return "", nil, forbidden("You are not a member of this project")
	}
	return id, found, nil
}

// folder is project, and the folder in it; one that does not exist is a 404.
func (p place) folder(st *state, who *identity) (string, *folder, error) {
	id, project, err := p.project(st, who)
	if err != nil {
		return "", nil, err
	}
	f := project.folder(p.Environment, p.SecretPath)
	if f == nil {
		return "", nil, notFound("Folder with path '%s' in environment with slug '%s' not found", cleanPath(p.SecretPath), p.Environment)
	}
	return id, f, nil
}

// secretAnswer is a secret as the API shows it.
type secretAnswer struct {
	ID                string    `json:"id"`
	LegacyID          string    `json:"_id"`
	Workspace         string    `json:"workspace"`
	Environment       string    `json:"environment"`
	Version           int       `json:"version"`
	Type              string    `json:"type"`
	SecretKey         string    `json:"secretKey"`
	SecretValue       string    `json:"secretValue"`
	SecretComment     string    `json:"secretComment"`
	SecretPath        string    `json:"secretPath"`
	SecretValueHidden bool      `json:"secretValueHidden"`
	SecretMetadata    []string  `json:"secretMetadata"`
	Tags              []string  `json:"tags"`
	CreatedAt         time.Time `json:"createdAt"`
	UpdatedAt         time.Time `json:"updatedAt"`
}

func show(project string, at place, name string, s *secret, value string) secretAnswer {
	return secretAnswer{
		ID: s.ID, LegacyID: s.ID, Workspace: project, Environment: at.Environment, Version: s.Version, Type: "shared",
		SecretKey: name, SecretValue: value, SecretComment: s.Comment, SecretPath: cleanPath(at.SecretPath),
		SecretMetadata: []string{}, Tags: []string{}, CreatedAt: s.Created, UpdatedAt: s.Updated,
	}
}

// missing tells whether the fault secret-missing hides a name.
func (s *Server) missing(name string) bool { return s.profile.Faults.Is(profile.SecretMissing, name) }

// listSecrets answers an empty list, not 404, where the folder does not exist, as the real service does.
func (s *Server) listSecrets(r *http.Request, who *identity) (any, error) {
	st, at := s.store.current.Load(), queried(r)
	id, project, err := at.project(st, who)
	if err != nil {
		return nil, err
	}
	secrets := []secretAnswer{}
	if project.folder(at.Environment, at.SecretPath) != nil {
		paths := []string{cleanPath(at.SecretPath)}
		if r.URL.Query().Get("recursive") == "true" {
			paths = project.Environments[at.Environment].under(at.SecretPath)
		}
		for _, path := range paths {
			here := at
			here.SecretPath = path
			f := project.folder(at.Environment, path)
			for _, name := range sortedNames(f.Secrets) {
				if !s.missing(name) {
					secrets = append(secrets, show(id, here, name, f.Secrets[name], valueOf(r, project, here, f.Secrets[name])))
				}
			}
		}
	}
	return map[string]any{"secrets": secrets, "imports": []any{}}, nil
}

func sortedNames(secrets map[string]*secret) []string {
	names := make([]string, 0, len(secrets))
	for name := range secrets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func valueOf(r *http.Request, project *project, at place, s *secret) string {
	if r.URL.Query().Get("expandSecretReferences") != "true" {
		return s.Value
	}
	return project.expand(s.Value, at.Environment, at.SecretPath)
}

func (s *Server) getSecret(r *http.Request, who *identity) (any, error) {
	at, name := queried(r), r.PathValue("name")
	st := s.store.current.Load()
	id, f, err := at.folder(st, who)
	if err != nil {
		return nil, err
	}
	found := f.Secrets[name]
	if found == nil || s.missing(name) {
		return nil, notFound("Secret with name '%s' not found", name)
	}
	return map[string]any{"secret": show(id, at, name, found, valueOf(r, st.Projects[id], at, found))}, nil
}

// written is the body of a create or an update.
type written struct {
	place
	SecretValue   *string `json:"secretValue"`
	SecretComment *string `json:"secretComment"`
}

// stored is a value as the real service keeps it: without white space around it, except for one newline at the end.
func stored(value string) string {
	trimmed := strings.TrimSpace(value)
	if strings.HasSuffix(value, "\n") {
		return trimmed + "\n"
	}
	return trimmed
}

func (s *Server) createSecret(r *http.Request, who *identity) (any, error) {
	name := r.PathValue("name")
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.SecretValue == nil {
		return nil, unprocessable("secretValue: Required")
	}
	return s.write(who, body.place, "create", func(id string, f *folder) (any, error) {
		created, err := f.create(name, *body.SecretValue, body.SecretComment)
		if err != nil {
			return nil, err
		}
		return map[string]any{"secret": show(id, body.place, name, created, created.Value)}, nil
	})
}

func (f *folder) create(name, value string, comment *string) (*secret, error) {
	if f.Secrets[name] != nil {
		return nil, badRequest("Secret already exist")
	}
	created := newSecret(stored(value))
	if comment != nil {
		created.Comment = *comment
	}
	f.Secrets[name] = created
	return created, nil
}

// createSecrets creates all or none.
func (s *Server) createSecrets(r *http.Request, who *identity) (any, error) {
	var body struct {
		place
		Secrets []struct {
			SecretKey     string  `json:"secretKey"`
			SecretValue   string  `json:"secretValue"`
			SecretComment *string `json:"secretComment"`
		} `json:"secrets"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.write(who, body.place, "create", func(id string, f *folder) (any, error) {
		answers := []secretAnswer{}
		for _, wanted := range body.Secrets {
			created, err := f.create(wanted.SecretKey, wanted.SecretValue, wanted.SecretComment)
			if err != nil {
				return nil, err
			}
			answers = append(answers, show(id, body.place, wanted.SecretKey, created, created.Value))
		}
		return map[string]any{"secrets": answers}, nil
	})
}

func (s *Server) updateSecret(r *http.Request, who *identity) (any, error) {
	name := r.PathValue("name")
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.write(who, body.place, "edit", func(id string, f *folder) (any, error) {
		known := f.Secrets[name]
		if known == nil {
			return nil, notFound("Secret with name %s not found", name)
		}
		if body.SecretValue != nil {
			known.update(stored(*body.SecretValue))
		}
		if body.SecretComment != nil {
			known.Comment = *body.SecretComment
		}
		return map[string]any{"secret": show(id, body.place, name, known, known.Value)}, nil
	})
}

func (s *Server) deleteSecret(r *http.Request, who *identity) (any, error) {
	name := r.PathValue("name")
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.write(who, body.place, "delete", func(id string, f *folder) (any, error) {
		known := f.Secrets[name]
		if known == nil {
			return nil, notFound("Secret not found")
		}
		delete(f.Secrets, name)
		return map[string]any{"secret": show(id, body.place, name, known, known.Value)}, nil
	})
}

// write runs edit on the folder of a place and keeps what it did, or nothing where it fails.
func (s *Server) write(who *identity, at place, action string, edit func(project string, f *folder) (any, error)) (any, error) {
	var answer any
	err := s.store.change(func(st *state) error {
		id, f, err := at.folder(st, who)
		if err != nil {
			return err
		}
		if who.ReadOnly {
			return forbidden("You are not allowed to %s on secrets", action)
		}
		answer, err = edit(id, f)
		return err
	})
	return answer, err
}
