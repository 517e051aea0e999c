package secrets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
)

// Survey is what a cluster's sources hold, by names alone.
type Survey struct {
	Cluster string `json:"cluster"`
	Secrets []Seen `json:"secrets"`
	// Unread are the sources that could not be read, each with the reason.
	Unread []string `json:"unread,omitempty"`
}

// Seen is one secret as a survey has found it.
type Seen struct {
	Name   string `json:"name"`
	Source string `json:"source"` // SourceSOPS or SourceInfisical, where it is or belongs
	Where  string `json:"where"`  // the file, or the place in Infisical
	What   string `json:"what,omitempty"`
	State  string `json:"state"`
	// Problem is what is wrong with it, and how to mend it.
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"` // the latter alone
}

// States of a secret.
const (
	StatePresent = "present"
	StateMissing = "missing"
	StateUnfit   = "unfit"   // it is there and cannot be used
	StateLater   = "later"   // it may be missing: create makes it, or only some clusters have it
	StateUnknown = "unknown" // its source could not be read
	StateHidden  = "unused"  // another source has a secret of this name, which is taken
)

// Look asks all sources of a cluster, and goes on where one cannot be read. It changes nothing, and no value is in what it gives.
func Look(ctx context.Context, c *config.Cluster, in Inputs) *Survey {
	return Open(ctx, c, in).Survey
}

// Opened is what could be read of a cluster's sources.
type Opened struct {
	*Survey
	Values    *Values // all that are there, whether they are enough or not
	Files     error   // why a SOPS file cannot be read, a line for each
	Infisical error   // why Infisical cannot; nil where the cluster has none
	Withheld  int     // secrets that are needed and that it does not give to this identity
}

// Open is Look with the values, complete or not, and with the reasons why a source could not be read.
func Open(ctx context.Context, c *config.Cluster, in Inputs) *Opened {
	files := openFiles(c, in)
	survey := &Survey{Cluster: c.Name}
	opened := &Opened{Survey: survey, Values: NewValues(), Files: files.err()}
	for _, file := range files {
		if file.err != nil {
			survey.Unread = append(survey.Unread, file.err.Error())
		}
	}
	local, doubled := files.all()
	addSandboxReaders(c, local)
	learn(local)
	wanted := needsOf(c)
	known := wanted.problems(local, nil, SourceSOPS, files.where)
	unread := map[string]bool{SourceSOPS: files.err() != nil}

	remote := &listing{}
	var at place
	if c.Secrets.Infisical.Has() {
		at = placeOf(c)
		found, err := lookInto(ctx, at, local, slices.Concat(wanted, products), in)
		if err == nil {
			remote = found
		} else {
			opened.Infisical = err
			survey.Unread = append(survey.Unread, err.Error())
			unread[SourceInfisical] = true
		}
		opened.Values.Add(remote.values, SourceInfisical)
		known = append(known, wanted.problems(remote.values, remote.withheld, SourceInfisical, at.where)...)
		for _, problem := range known {
			if problem.Withheld {
				opened.Withheld++
			}
		}
		wanted = append(wanted, products...)
	}
	opened.Values.Add(local, SourceSOPS) // these win
	values := map[string]map[string]string{SourceSOPS: local, SourceInfisical: remote.values}
	for _, n := range wanted {
		survey.Secrets = append(survey.Secrets, n.seen(values, unread[n.source], known, files, at))
	}
	survey.rest(wanted, values, files, at)
	for _, problem := range doubled {
		survey.Secrets = append(survey.Secrets, Seen{Name: problem.Name, Source: SourceSOPS, Where: files.of(problem.Name), State: StateUnfit, Problem: problem.Text, Fix: problem.Fix})
	}
	slices.SortStableFunc(survey.Secrets, func(a, b Seen) int {
		if a.Source != b.Source {
			return -strings.Compare(a.Source, b.Source) // SOPS first, which opens the other
		}
		return strings.Compare(a.Name, b.Name)
	})
	return opened
}

// lookInto reads a cluster's path in Infisical with the client of the SOPS files.
func lookInto(ctx context.Context, at place, local map[string]string, wanted needs, in Inputs) (*listing, error) {
	if local[InfisicalClientID] == "" || local[InfisicalClientSecret] == "" {
		return nil, fmt.Errorf("what stands in %s is not known before %s and %s are there", at, InfisicalClientID, InfisicalClientSecret)
	}
	return newSession(at, local, InfisicalClientID, InfisicalClientSecret, in).read(ctx, wanted)
}

// seen judges a secret that a cluster is made with.
func (n need) seen(values map[string]map[string]string, unread bool, known []Problem, files files, at place) Seen {
	seen := Seen{Name: n.name, Source: n.source, What: n.what, State: StatePresent}
	_, has := values[n.source][n.name]
	if _, own := values[SourceSOPS][n.name]; own && !has && n.optional {
		seen.Source, has = SourceSOPS, true // such as a PKI that the SOPS file brings
	}
	seen.Where = whereOf(seen.Source, n.name, files, at)
	i := slices.IndexFunc(known, func(p Problem) bool { return p.Name == n.name && p.Source == n.source })
	switch {
	case !has && unread:
		seen.State = StateUnknown
	case !has && i >= 0 && known[i].Withheld:
		seen.State = StateUnfit
	case !has && n.optional:
		seen.State = StateLater
	case !has:
		seen.State = StateMissing
	case i >= 0:
		seen.State = StateUnfit
	}
	if i >= 0 && seen.State != StateUnknown {
		seen.Problem, seen.Fix = known[i].Text, known[i].Fix
	}
	return seen
}

// rest are the secrets that castle does not need. What stands in both sources is taken from the SOPS files.
func (s *Survey) rest(wanted needs, values map[string]map[string]string, files files, at place) {
	for _, source := range []string{SourceSOPS, SourceInfisical} {
		for _, name := range slices.Sorted(maps.Keys(values[source])) {
			if slices.ContainsFunc(wanted, func(n need) bool { return n.name == name && n.source == source }) ||
				slices.ContainsFunc(s.Secrets, func(seen Seen) bool { return seen.Name == name && seen.Source == source }) {
				continue
			}
			seen := Seen{Name: name, Source: source, Where: whereOf(source, name, files, at), State: StatePresent}
			if _, own := values[SourceSOPS][name]; own && source == SourceInfisical {
				seen.State = StateHidden
			}
			s.Secrets = append(s.Secrets, seen)
		}
	}
}

func whereOf(source, name string, files files, at place) string {
	if source == SourceInfisical {
		return at.of(name).String()
	}
	if file := files.of(name); file != "" {
		return file
	}
	return files[0].name
}
