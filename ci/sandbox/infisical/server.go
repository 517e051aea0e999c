// Package infisical simulates the part of Infisical's API that Castle and External Secrets Operator call: universal auth,
// secrets and folders, with their refusals, rate limit, delays and faults. It never speaks for the real service: the values
// it keeps are those of a proving ground, in clear.
package infisical

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Server is the simulated Infisical, an http.Handler.
type Server struct {
	store    *store
	clients  map[string]identity
	policies map[string][]Policy // by the project's id
	profile  profile.Profile
	moods    *moods
	mux      *http.ServeMux
}

// Open makes a server from the state in a file, or from the seed where that file does not exist yet; every change is in
// the file before it is answered. An empty name keeps the state in memory. The clients and policies are always the seed's, and a project
// that the state does not know is added from it. A state that cannot be read or written is an error.
func Open(file string, seed Seed, p profile.Profile) (*Server, error) {
	s := &Server{clients: map[string]identity{}, policies: map[string][]Policy{}, profile: p, moods: newMoods(seed.RequestsPerMinute, p.Faults), mux: http.NewServeMux()}
	for _, project := range seed.Projects {
		for _, client := range project.Clients {
			if client.ID == "" || client.Secret == "" {
				return nil, fmt.Errorf("a client of project %s in the simulated Infisical needs an id and a secret", project.Slug)
			}
			who := identity{Client: client, project: project.ID, permissions: client.rules(p.Faults)}
			for _, rule := range who.permissions {
				if err := rule.check(); err != nil {
					return nil, err
				}
			}
			s.clients[client.ID] = who
		}
		s.policies[project.ID] = policiesOf(project, p.Faults)
		for _, policy := range s.policies[project.ID] {
			if err := checkGlob(policy.SecretPath); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if s.store, err = openStore(file, seed); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

// handler answers one operation with what is to be encoded; who is nil where the operation takes no token.
type handler func(r *http.Request, who *identity) (any, error)

func (s *Server) routes() {
	delays := s.profile.Delays
	open := func(pattern string, delay time.Duration, answer handler) {
		s.mux.Handle(pattern, s.operation(pattern, delay, answer))
	}
	closed := func(pattern string, answer handler) {
		open(pattern, delays.InfisicalRequest, func(r *http.Request, _ *identity) (any, error) {
			who, err := s.authenticate(r)
			if err != nil {
				return nil, err
			}
			return answer(r, who)
		})
	}
	open("POST /api/v1/auth/universal-auth/login", delays.InfisicalLogin, s.login)
	open("POST /api/v1/auth/token/renew", delays.InfisicalRequest, s.renew)
	open("POST /api/v1/auth/token/revoke", delays.InfisicalRequest, s.revoke)
	closed("GET /api/v3/secrets/raw", s.listSecrets)
	closed("GET /api/v3/secrets/raw/{name}", s.getSecret)
	closed("POST /api/v3/secrets/raw/{name}", s.createSecret)
	closed("PATCH /api/v3/secrets/raw/{name}", s.updateSecret)
	closed("DELETE /api/v3/secrets/raw/{name}", s.deleteSecret)
	closed("POST /api/v3/secrets/batch/raw", s.createSecrets)
	closed("GET /api/v1/folders", s.listFolders)
	closed("POST /api/v1/folders", s.createFolder)
	closed("PATCH /api/v1/folders/{id}", s.renameFolder)
	closed("DELETE /api/v1/folders/{id}", s.deleteFolder)
	s.mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"message": "Ok", "date": time.Now().UTC()}, nil)
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, nil, &refusal{http.StatusNotFound, "Not Found", fmt.Sprintf("Route %s:%s not found", r.Method, r.URL.Path)})
	})
}

// operation refuses in the order of the real service: the rate limit comes before the token and the work. Requests wait
// beside each other, since no lock is held meanwhile.
func (s *Server) operation(name string, delay time.Duration, answer handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := s.moods.refuse(name, w.Header()); refused != nil {
			write(w, nil, refused)
			return
		}
		if err := s.profile.Sleep(r.Context(), delay); err != nil {
			return // the client did not wait
		}
		result, err := answer(r, nil)
		write(w, result, err)
	})
}

// ServeHTTP answers a request to the API, under /api as in the real service.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	s.mux.ServeHTTP(w, r)
}

// Put sets a secret as the world's own hand would, without a token, delay or fault; folders are made as needed. The project
// is named by its id or slug.
func (s *Server) Put(project, environment, path, name, value string) error {
	return s.store.change(func(st *state) error {
		_, p := st.project(project)
		if p == nil {
			return fmt.Errorf("the simulated Infisical has no project %s: add it to the seed", project)
		}
		f := p.environment(environment).make(path)
		if known := f.Secrets[name]; known != nil {
			known.update(value)
		} else {
			f.Secrets[name] = newSecret(value)
		}
		return nil
	})
}

// Get looks at a secret as Put sets it; false where there is none.
func (s *Server) Get(project, environment, path, name string) (string, bool) {
	_, p := s.store.current.Load().project(project)
	if p == nil {
		return "", false
	}
	f := p.folder(environment, path)
	if f == nil || f.Secrets[name] == nil {
		return "", false
	}
	return f.Secrets[name].Value, true
}

// read decodes a body. What is wrong with it is said without quoting it, since it may hold a value.
func read(r *http.Request, into any) error {
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &refusal{http.StatusRequestEntityTooLarge, "Payload Too Large", "Request body is too large"}
	}
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil
	}
	if json.Unmarshal(data, into) != nil {
		return badRequest("Body is not valid JSON")
	}
	return nil
}
