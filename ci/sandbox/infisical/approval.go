package infisical

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Policy is a change policy: changes of secrets in its paths wait for somebody's approval. Machine identities are held to one since August
// 2026 (pull request 7540 of Infisical), before that they always went by it.
type Policy struct {
	Environment string `yaml:"environment"`
	SecretPath  string `yaml:"secretPath"` // glob; empty is the whole environment
	// BypassForMachineIdentities lets them change secrets without an approval. People have to ask all the same.
	BypassForMachineIdentities bool `yaml:"bypassForMachineIdentities"`
}

// policies are the project's, and the one that the fault infisical-approval sets on every environment that there is.
func policiesOf(p Project, faults profile.Faults) []Policy {
	policies := slices.Clone(p.Policies)
	if path, wanted := faults[profile.InfisicalApproval]; wanted {
		for slug := range p.Environments {
			policies = append(policies, Policy{Environment: slug, SecretPath: path})
		}
	}
	return policies
}

// holds tells whether a change of a machine identity in a place waits for an approval: a policy for the very path goes before one with a
// glob, and that before one for the environment. Source: Infisical 89af95e,
// backend/src/ee/services/secret-approval-policy/secret-approval-policy-fns.ts (resolvePolicyForPath, shouldApplyPolicy).
func (s *Server) holds(project string, at place) bool {
	fitting := slices.DeleteFunc(slices.Clone(s.policies[project]), func(p Policy) bool {
		return p.Environment != at.Environment || !glob(p.SecretPath, cleanPath(at.SecretPath))
	})
	if len(fitting) == 0 {
		return false
	}
	return !slices.MaxFunc(fitting, func(a, b Policy) int { return cmp.Compare(a.score(), b.score()) }).BypassForMachineIdentities
}

func (p Policy) score() int {
	switch {
	case p.SecretPath == "":
		return 0
	case strings.ContainsAny(p.SecretPath, "*?["):
		return 1
	default:
		return 2
	}
}

// Operations on a secret.
const (
	operationCreate = "create"
	operationUpdate = "update"
	operationDelete = "delete"
)

// change is one that somebody asked for. What is nil stays as it is.
type change struct {
	Operation string  `json:"op"`
	Name      string  `json:"key"`
	Value     *string `json:"value,omitempty"`
	Comment   *string `json:"comment,omitempty"`
}

// action is what a change asks permission for.
func (c change) action() string {
	if c.Operation == operationUpdate {
		return actionEdit
	}
	return c.Operation
}

// apply makes a change, and gives the secret as it is then, or was.
func (f *folder) apply(c change) *secret {
	s := f.Secrets[c.Name]
	switch c.Operation {
	case operationCreate:
		s = newSecret("")
		f.Secrets[c.Name] = s
		if c.Value != nil {
			s.Value = stored(*c.Value)
		}
	case operationUpdate:
		if c.Value != nil {
			s.update(stored(*c.Value))
		}
	case operationDelete:
		delete(f.Secrets, c.Name)
	}
	if c.Comment != nil {
		s.Comment = *c.Comment
	}
	return s
}

// request is changes that wait for an approval.
type request struct {
	ID          string    `json:"id"`
	Slug        string    `json:"slug"`
	Environment string    `json:"environment"`
	Path        string    `json:"path"`
	Changes     []change  `json:"changes"`
	Merged      bool      `json:"merged"`
	Created     time.Time `json:"created"`
}

// approvalAnswer is what a change that waits is answered with, instead of a secret and with 200. Source: Infisical 03e75b2,
// backend/src/server/routes/v4/secret-router.ts and v3/deprecated-secret-router.ts; 037a8f2, backend/src/db/schemas/secret-approval-requests.ts.
type approvalAnswer struct {
	ID        string    `json:"id"`
	Slug      string    `json:"slug"`
	PolicyID  string    `json:"policyId"`
	FolderID  string    `json:"folderId"`
	Status    string    `json:"status"`
	HasMerged bool      `json:"hasMerged"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// ask keeps changes as a request. What speaks against them is found as it is for the change itself, in other words. Source: Infisical 3294b33,
// backend/src/ee/services/secret-approval-request/secret-approval-request-commit-fns.ts (buildSecretApprovalCommits).
func (st *state) ask(who *identity, project string, at place, changes []change) (any, error) {
	f := st.Projects[project].folder(at.Environment, at.SecretPath)
	if f == nil {
		return nil, notFound("Folder not found for the environment slug '%s' & secret path '%s'", at.Environment, cleanPath(at.SecretPath))
	}
	for _, c := range changes {
		switch there := f.Secrets[c.Name] != nil; {
		case c.Operation == operationCreate && there:
			return nil, badRequest("Secret already exists: '%s' in path '%s' of environment '%s'", c.Name, cleanPath(at.SecretPath), at.Environment)
		case c.Operation != operationCreate && !there:
			return nil, notFound("Secret does not exist: %s", c.Name)
		}
	}
	for _, c := range changes {
		if !who.can(subjectSecrets, c.action(), at.thing(c.Name)) {
			return nil, notAllowed(subjectSecrets, c.action())
		}
	}
	made := &request{ID: uuid.NewString(), Slug: strings.ReplaceAll(uuid.NewString(), "-", "")[:10],
		Environment: at.Environment, Path: cleanPath(at.SecretPath), Changes: changes, Created: time.Now().UTC()}
	p := st.Projects[project]
	p.Requests = append(p.Requests, made)
	return map[string]any{"approval": approvalAnswer{ID: made.ID, Slug: made.Slug, PolicyID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(project+made.Path)).String(),
		FolderID: f.ID, Status: "open", CreatedAt: made.Created, UpdatedAt: made.Created}}, nil
}

// Waiting counts the requests of a project, by its id or slug, that wait for an approval.
func (s *Server) Waiting(project string) int {
	_, p := s.store.current.Load().project(project)
	if p == nil {
		return 0
	}
	return len(p.waiting())
}

func (p *project) waiting() []*request {
	return slices.DeleteFunc(slices.Clone(p.Requests), func(r *request) bool { return r.Merged })
}

// Approve makes the changes that wait in a project, as who may approve them would, the oldest first. Of what was made meanwhile nothing is
// replaced: there Infisical notes a conflict. Source: Infisical cc89fc0, backend/src/ee/services/secret-approval-request/secret-approval-request-service.ts.
func (s *Server) Approve(project string) error {
	return s.store.change(func(st *state) error {
		_, p := st.project(project)
		if p == nil {
			return notFound("Project with slug or id '%s' not found", project)
		}
		for _, r := range p.waiting() {
			r.Merged = true
			f := p.folder(r.Environment, r.Path)
			for _, c := range r.Changes {
				if f != nil && (f.Secrets[c.Name] != nil) == (c.Operation != operationCreate) {
					f.apply(c)
				}
			}
		}
		return nil
	})
}
