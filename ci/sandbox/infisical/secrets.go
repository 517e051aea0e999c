package infisical

import (
	"fmt"
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
		return "", nil, p.noFolder()
	}
	return id, f, nil
}

func (p place) noFolder() *refusal {
	return notFound("Folder with path '%s' in environment with slug '%s' not found", cleanPath(p.SecretPath), p.Environment)
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

// mask stands for a value that is not shown. Source: Infisical, backend/src/services/secret/secret-fns.ts (INFISICAL_SECRET_VALUE_HIDDEN_MASK).
const mask = "<hidden-by-infisical>"

func show(project string, at place, name string, s *secret, value string, hidden bool) secretAnswer {
	if hidden {
		value = mask
	}
	return secretAnswer{
		ID: s.ID, LegacyID: s.ID, Workspace: project, Environment: at.Environment, Version: s.Version, Type: "shared",
		SecretKey: name, SecretValue: value, SecretComment: s.Comment, SecretPath: cleanPath(at.SecretPath), SecretValueHidden: hidden,
		SecretMetadata: []string{}, Tags: []string{}, CreatedAt: s.Created, UpdatedAt: s.Updated,
	}
}

// thing is a secret of the place, for a permission to be asked of.
func (p place) thing(name string) *thing { return &thing{p.Environment, cleanPath(p.SecretPath), name} }

// wantsValues tells whether a request asks for values, as it does unless it says otherwise. Source: Infisical 03e75b2,
// backend/src/server/routes/v3/deprecated-secret-router.ts (viewSecretValue).
func wantsValues(r *http.Request) bool { return r.URL.Query().Get("viewSecretValue") != "false" }

// missing tells whether the fault secret-missing hides a name.
func (s *Server) missing(name string) bool { return s.profile.Faults.Is(profile.SecretMissing, name) }

// listSecrets answers an empty list, not 404, where the folder does not exist, as the real service does. What the identity may not see is left
// out without a word; one value that it may not read, in the folder itself, refuses the whole list. Source: Infisical 0174d36,
// backend/src/services/secret-v2-bridge/secret-v2-bridge-service.ts (getSecrets).
func (s *Server) listSecrets(r *http.Request, who *identity) (any, error) {
	st, at := s.store.current.Load(), queried(r)
	id, project, err := at.project(st, who)
	if err != nil {
		return nil, err
	}
	if !who.sees(actionDescribe, nil) {
		return nil, notAllowed(subjectSecrets, actionDescribe)
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
			listed, err := s.list(r, who, id, project, here, path == cleanPath(at.SecretPath))
			if err != nil {
				return nil, err
			}
			secrets = append(secrets, listed...)
		}
	}
	return map[string]any{"secrets": secrets, "imports": []any{}}, nil
}

// list shows the secrets of one folder; asked says that it is the one that the request names.
func (s *Server) list(r *http.Request, who *identity, id string, project *project, at place, asked bool) (secrets []secretAnswer, err error) {
	f := project.folder(at.Environment, at.SecretPath)
	for _, name := range sortedNames(f.Secrets) {
		readable := who.sees(actionValue, at.thing(name))
		switch {
		case s.missing(name) || !who.sees(actionDescribe, at.thing(name)):
			continue
		case wantsValues(r) && !readable && !asked:
			continue
		case wantsValues(r) && !readable:
			return nil, notAllowed(subjectSecrets, actionValue)
		}
		value, unreadable := valueOf(r, who, project, at, name)
		if unreadable != nil {
			return nil, forbiddenRequest("Failed to expand one or more secret references")
		}
		secrets = append(secrets, show(id, at, name, f.Secrets[name], value, !wantsValues(r)))
	}
	return secrets, nil
}

func sortedNames(secrets map[string]*secret) []string {
	names := make([]string, 0, len(secrets))
	for name := range secrets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// valueOf is a value with its references expanded, where the request wants that. Each of these has to be readable, too.
func valueOf(r *http.Request, who *identity, project *project, at place, name string) (string, error) {
	value := project.folder(at.Environment, at.SecretPath).Secrets[name].Value
	if r.URL.Query().Get("expandSecretReferences") != "true" || !wantsValues(r) {
		return value, nil
	}
	return project.expand(who, value, at, name)
}

// getSecret refuses in the order of the real service: who may not see a secret is not told whether it is there. Source: Infisical 0174d36,
// backend/src/services/secret-v2-bridge/secret-v2-bridge-service.ts (getSecretByName).
func (s *Server) getSecret(r *http.Request, who *identity) (any, error) {
	at, name := queried(r), r.PathValue("name")
	st := s.store.current.Load()
	id, f, err := at.folder(st, who)
	if err != nil {
		return nil, err
	}
	if !who.sees(actionDescribe, at.thing(name)) {
		return nil, notAllowed(subjectSecrets, actionDescribe)
	}
	found := f.Secrets[name]
	if found == nil || s.missing(name) {
		return nil, notFound("Secret with name '%s' not found", name)
	}
	value, err := valueOf(r, who, st.Projects[id], at, name)
	if err != nil {
		return nil, err
	}
	if wantsValues(r) && !who.sees(actionValue, at.thing(name)) {
		return nil, &refusal{http.StatusForbidden, "ForbiddenReadSecretError", fmt.Sprintf("You do not have permission to view secret value on secret with name '%s'", name)}
	}
	return map[string]any{"secret": show(id, at, name, found, value, !wantsValues(r))}, nil
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
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.SecretValue == nil {
		return nil, unprocessable("secretValue: Required")
	}
	return s.one(who, body.place, change{operationCreate, r.PathValue("name"), body.SecretValue, body.SecretComment})
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
	var changes []change
	for _, wanted := range body.Secrets {
		changes = append(changes, change{operationCreate, wanted.SecretKey, &wanted.SecretValue, wanted.SecretComment})
	}
	return s.write(who, body.place, changes, func(made []secretAnswer) any { return map[string]any{"secrets": made} },
		func(names []string) error { return badRequest("Secret already exist: %s", strings.Join(names, ",")) })
}

func (s *Server) updateSecret(r *http.Request, who *identity) (any, error) {
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.one(who, body.place, change{operationUpdate, r.PathValue("name"), body.SecretValue, body.SecretComment})
}

func (s *Server) deleteSecret(r *http.Request, who *identity) (any, error) {
	var body written
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.one(who, body.place, change{Operation: operationDelete, Name: r.PathValue("name")})
}

// one makes one change.
func (s *Server) one(who *identity, at place, c change) (any, error) {
	return s.write(who, at, []change{c}, func(made []secretAnswer) any { return map[string]any{"secret": made[0]} }, func([]string) error {
		switch c.Operation {
		case operationCreate:
			return badRequest("Secret already exist")
		case operationUpdate:
			return notFound("Secret with name %s not found", c.Name)
		default:
			return notFound("Secret not found")
		}
	})
}

// write makes changes in a place and keeps all of them or none, or keeps them as a request where a policy holds them. Where secrets are there
// that should not be, or the other way round, unfit says so, before any permission is looked at, as in the real service. Source: Infisical
// 0174d36, backend/src/services/secret-v2-bridge/secret-v2-bridge-service.ts (createSecret, updateSecret, deleteSecret, createManySecret).
func (s *Server) write(who *identity, at place, changes []change, answered func([]secretAnswer) any, unfit func(names []string) error) (any, error) {
	var answer any
	err := s.store.change(func(st *state) error {
		id, project, err := at.project(st, who)
		if err != nil {
			return err
		}
		if s.holds(id, at) {
			answer, err = st.ask(who, id, at, changes)
			return err
		}
		f := project.folder(at.Environment, at.SecretPath)
		if f == nil {
			return at.noFolder()
		}
		var names []string
		for _, c := range changes {
			if (f.Secrets[c.Name] != nil) == (c.Operation == operationCreate) {
				names = append(names, c.Name)
			}
		}
		if names != nil {
			return unfit(names)
		}
		for _, c := range changes {
			if !who.can(subjectSecrets, c.action(), at.thing(c.Name)) {
				return notAllowed(subjectSecrets, c.action())
			}
		}
		var made []secretAnswer
		for _, c := range changes {
			changed := f.apply(c)
			value := changed.Value
			if c.Operation == operationUpdate && c.Value == nil {
				value = "" // what was not sent is not answered either
			}
			hidden := !who.sees(actionValue, at.thing(c.Name))
			made = append(made, show(id, at, c.Name, changed, value, hidden))
		}
		answer = answered(made)
		return nil
	})
	return answer, err
}
