package secrets

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"tazlab.net/castle/ci/cluster/config"
)

// reader is a machine identity that goes into the cluster. Whoever may create an ExternalSecret for a store can name any folder in it
// (external-secrets v0.20.4, pkg/provider/infisical/client.go, getSecretAddress), so that the identity alone decides what can be read: there is
// one for each folder.
type reader struct {
	id, secret string // names of its client id and secret
	folder     string
	proof      string   // a secret of its folder that is always there
	closed     []string // folders that it must not read
	what       string
}

func readersOf(c *config.Cluster) []reader {
	i := c.Secrets.Infisical
	return []reader{
		{InfisicalFluxClientID, InfisicalFluxClientSecret, i.FluxPath, GitOpsUsername, []string{i.Path}, "Flux's secrets in the cluster"},
		{InfisicalWorkloadsClientID, InfisicalWorkloadsClientSecret, i.WorkloadsPath, Proof, []string{i.Path, i.FluxPath}, "the workloads' secrets in the cluster"},
	}
}

// howToMake says what is to be done in Infisical and in the SOPS file.
func (r reader) howToMake(c *config.Cluster) string {
	return fmt.Sprintf("in Infisical make a machine identity with universal auth, whose role has %s on secrets in environment %s, path %s, and nothing else; "+
		"then set %s and %s with \"sops edit %s\"", readable, c.Secrets.Infisical.Environment, r.folder, r.id, r.secret, c.Secrets.SOPS[0])
}

// SandboxReaders are the client ids and secrets, by their names, of a proving ground's identities where its SOPS file is older than they are. They
// follow from castle's own, so that the simulated Infisical and the cluster have the same.
func SandboxReaders(clientID, clientSecret string) map[string]string {
	readers := map[string]string{}
	for _, names := range [][2]string{{InfisicalFluxClientID, InfisicalFluxClientSecret}, {InfisicalWorkloadsClientID, InfisicalWorkloadsClientSecret}} {
		key := hmac.New(sha256.New, []byte(clientSecret))
		key.Write([]byte(names[0]))
		readers[names[0]] = uuid.NewSHA1(uuid.NameSpaceURL, []byte(clientID+" "+names[0])).String()
		readers[names[1]] = hex.EncodeToString(key.Sum(nil))
	}
	return readers
}

// addSandboxReaders adds them to the secrets of the SOPS files where these have none.
func addSandboxReaders(c *config.Cluster, values map[string]string) {
	if c.Platform != config.PlatformSandbox || !c.Secrets.Infisical.Has() || values[InfisicalClientID] == "" || values[InfisicalClientSecret] == "" {
		return
	}
	made := SandboxReaders(values[InfisicalClientID], values[InfisicalClientSecret])
	for name := range made {
		if values[name] != "" {
			return
		}
	}
	maps.Copy(values, made)
}

// ReadersError says what is wrong with the identities that go into the cluster, a line for each.
type ReadersError struct{ Problems []Problem }

func (e *ReadersError) Error() string {
	text := "the machine identities that go into the cluster may read too much, or too little:"
	for _, problem := range e.Problems {
		text += "\n  " + problem.Text + ": " + problem.Fix
	}
	return text
}

// Readers proves with Infisical that the identities that go into the cluster are not castle's own, that neither of them can read what only castle
// may, and that nothing of its own folder is kept from it; else it is a *ReadersError. complete says that each folder holds what it has to.
func Readers(ctx context.Context, c *config.Cluster, values map[string]string, in Inputs) (complete bool, err error) {
	readers := readersOf(c)
	for i, r := range readers {
		for _, other := range append([]string{InfisicalClientID}, readers[0].id)[:i+1] {
			if values[r.id] == values[other] {
				return false, &ReadersError{[]Problem{{Name: r.id, Source: SourceSOPS,
					Text: fmt.Sprintf("%s is the client id of %s as well", r.id, other), Fix: r.howToMake(c)}}}
			}
		}
	}
	var asks []func() (*Problem, error)
	var empty atomic.Bool
	for _, r := range readers {
		s := newSession(placeOf(c), values, r.id, r.secret, in)
		for _, folder := range r.closed {
			asks = append(asks, func() (*Problem, error) {
				seen, err := s.in(folder).sees(ctx)
				if err != nil || seen == "" {
					return nil, err
				}
				return &Problem{Name: r.id, Source: SourceInfisical, Text: fmt.Sprintf("the machine identity of %s can see %s in %s", r.id, seen, s.place.in(folder)),
					Fix: fmt.Sprintf("in Infisical bind its role to secretPath %s, and give it no other role or group", r.folder)}, nil
			})
		}
		asks = append(asks, func() (*Problem, error) {
			has, problem, err := s.reads(ctx, r)
			if !has {
				empty.Store(true)
			}
			return problem, err
		})
	}
	err = atOnce(asks)
	return !empty.Load(), err
}

// readersRead proves that each of them reads what its folder has to hold.
func readersRead(ctx context.Context, c *config.Cluster, values map[string]string, in Inputs) error {
	var asks []func() (*Problem, error)
	for _, r := range readersOf(c) {
		s := newSession(placeOf(c), values, r.id, r.secret, in)
		asks = append(asks, func() (*Problem, error) {
			has, problem, err := s.reads(ctx, r)
			if !has && problem == nil && err == nil {
				problem = s.unread(r)
			}
			return problem, err
		})
	}
	return atOnce(asks)
}

// reads tells whether this identity reads the proof of its folder, and the problem where that is kept from it.
func (s *session) reads(ctx context.Context, r reader) (has bool, problem *Problem, err error) {
	_, has, withheld, err := s.in(r.folder).get(ctx, r.proof)
	if withheld != nil {
		problem = s.unread(r)
	}
	return has, problem, err
}

func (s *session) unread(r reader) *Problem {
	return &Problem{Name: r.id, Source: SourceInfisical, Text: fmt.Sprintf("the machine identity of %s cannot read %s in %s", r.id, r.proof, s.place.in(r.folder)),
		Fix: fmt.Sprintf("in Infisical make it a member of the project, with %s on secrets in environment %s, path %s", readable, s.environment, r.folder)}
}

// atOnce asks all at the same time, and gives their problems in order.
func atOnce(asks []func() (*Problem, error)) error {
	problems, errs := make([]*Problem, len(asks)), make([]error, len(asks))
	var wait sync.WaitGroup
	for i, ask := range asks {
		wait.Go(func() { problems[i], errs[i] = ask() })
	}
	wait.Wait()
	found := &ReadersError{}
	for i, problem := range problems {
		if errs[i] != nil {
			return errs[i]
		}
		if problem != nil {
			found.Problems = append(found.Problems, *problem)
		}
	}
	if found.Problems == nil {
		return nil
	}
	return found
}

// sees says what of a folder this identity can see, empty where that is nothing. Infisical leaves out of a list what may not be seen, and in a
// folder without secrets only the question for one tells.
func (s *session) sees(ctx context.Context) (seen string, err error) {
	names := []string{TalosSecrets, AdminKubeconfig, AdminTalosconfig}
	said := make([]string, len(names)+1)
	asks := []func() (*Problem, error){func() (*Problem, error) {
		values, err := s.list(ctx)
		refused, is := errors.AsType[*InfisicalError](err)
		switch {
		case is && refused.valueRefused():
			said[0] = "names of secrets"
			return nil, nil
		case is && refused.Status == http.StatusForbidden && !refused.tokenRefused(), is && refused.Status == http.StatusNotFound:
			return nil, nil
		}
		said[0] = strings.Join(slices.Sorted(maps.Keys(values)), ", ")
		return nil, err
	}}
	for i, name := range names {
		asks = append(asks, func() (*Problem, error) {
			may, err := s.maySee(ctx, name)
			if may {
				said[i+1] = "whether " + name + " is there"
			}
			return nil, err
		})
	}
	err = atOnce(asks)
	return cmp.Or(said...), err
}

// Share gives the cluster's identities their folders in Infisical: it makes those that are missing, and copies what stood in castle's own folder
// before there were others. What is in a folder is never changed, and the old copies stay: they are the user's to remove. The proof comes last,
// and says that all of it was done. At last it proves that the identities read their folders. copied are the secrets that workloads may have, for
// somebody to look at.
func (v Values) Share(ctx context.Context, c *config.Cluster, in Inputs) (copied []string, err error) {
	k := v.kept()
	theirs, workloads := k.caller.in(c.Secrets.Infisical.FluxPath), k.caller.in(c.Secrets.Infisical.WorkloadsPath)
	missing := map[string]string{}
	for _, name := range flux {
		if value, has := k.found.own[name]; has && k.found.flux[name] == "" {
			missing[name] = value
		}
	}
	if k.shared && len(missing) == 0 {
		return nil, nil
	}
	_, done, withheld, err := workloads.get(ctx, Proof)
	switch {
	case err != nil:
		return nil, err
	case withheld != nil:
		return nil, fmt.Errorf("%s %s in %s: %s", Proof, withheld.text, workloads, withheld.fix)
	}
	if len(missing) > 0 {
		if err := theirs.fill(ctx, missing); err != nil {
			return nil, err
		}
	}
	if !done {
		if copied, err = workloads.fillFirst(ctx, k.found.own); err != nil {
			return copied, err
		}
	}
	return copied, readersRead(ctx, c, v.All(), in)
}

// fillFirst copies from castle's own folder what workloads may ask for, where the cluster was made when they read that one, and leaves the proof.
func (s *session) fillFirst(ctx context.Context, own map[string]string) (copied []string, err error) {
	others := map[string]string{}
	if _, before := own[TalosSecrets]; before {
		for name, value := range own {
			if !isCastles(name) {
				others[name] = value
			}
		}
	}
	if err := s.fill(ctx, others); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(others)), s.fill(ctx, map[string]string{Proof: rand.Text()})
}

// fill makes the secrets that are not there, and the folder where that is missing.
func (s *session) fill(ctx context.Context, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.TrimSpace(values[name]) == "" {
			continue
		}
		_, err := s.create(ctx, name, values[name])
		if refused, is := errors.AsType[*InfisicalError](err); is && refused.Status == http.StatusNotFound {
			if err = s.makeFolder(ctx); err == nil {
				_, err = s.create(ctx, name, values[name])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isCastles tells whether a secret of castle's own folder is nothing that workloads ask for.
func isCastles(name string) bool {
	return slices.Contains(flux, name) || slices.Contains([]string{
		InfisicalClientID, InfisicalClientSecret, InfisicalFluxClientID, InfisicalFluxClientSecret, InfisicalWorkloadsClientID, InfisicalWorkloadsClientSecret,
		ProxmoxAPIToken, StatePassphrase, AWSAccessKeyID, AWSSecretAccessKey, TalosSecrets, AdminKubeconfig, AdminTalosconfig,
	}, name)
}
