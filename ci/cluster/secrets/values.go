package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Values holds resolved secrets. Printed, logged or encoded in any way it shows names only; a value leaves it by Get and
// All. It is safe for concurrent use.
type Values struct {
	// A function, since fmt follows anything else where it may not call methods: in a field that is not exported.
	open func() *kept
}

type kept struct {
	mu      sync.RWMutex
	values  map[string]string
	sources map[string]string
	caller  *session // nil: nothing can be put
	found   *listing // by the caller
	shared  bool     // the identities that go into the cluster read in their folders what these have to hold
	written bool     // something was put
}

// Entry is one line of the inventory.
type Entry struct {
	Name   string `json:"name"`
	Source string `json:"source"` // SourceSOPS or SourceInfisical
}

// NewValues holds nothing yet.
func NewValues() *Values {
	k := &kept{values: map[string]string{}, sources: map[string]string{}}
	return &Values{open: func() *kept { return k }}
}

// kept is what the values hold, nothing where they are the zero value.
func (v Values) kept() *kept {
	if v.open == nil {
		return &kept{}
	}
	return v.open()
}

// Add holds more secrets, by name, and has the process show none of them. source is SourceSOPS or SourceInfisical.
func (v Values) Add(values map[string]string, source string) {
	learn(values)
	k := v.kept()
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, value := range values {
		k.values[name] = value
		k.sources[name] = source
	}
}

// Get is a secret's value, false where there is no such secret.
func (v Values) Get(name string) (string, bool) {
	k := v.kept()
	k.mu.RLock()
	defer k.mu.RUnlock()
	value, has := k.values[name]
	return value, has
}

// names lists the secrets in order.
func (v Values) names() []string {
	k := v.kept()
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Sorted(maps.Keys(k.values))
}

// Inventory lists the secrets that the cluster is made with and where each came from, in order of their names.
func (v Values) Inventory() []Entry {
	k := v.kept()
	k.mu.RLock()
	defer k.mu.RUnlock()
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(k.values)) {
		if !products.has(name) {
			entries = append(entries, Entry{Name: name, Source: k.sources[name]})
		}
	}
	return entries
}

// All is a copy of every value by name.
func (v Values) All() map[string]string {
	k := v.kept()
	k.mu.RLock()
	defer k.mu.RUnlock()
	return maps.Clone(k.values)
}

// Establish keeps a secret in the cluster's path in Infisical where none of that name is there yet, and gives the one that is there
// then: two that make one at the same time end with the same, and what a cluster was built upon is never replaced. A value that is empty
// or that Infisical would not give back as it is, since it trims white space, is refused; so is a name that the SOPS file owns.
func (v Values) Establish(ctx context.Context, name, value string) (kept string, err error) {
	caller, there, has, err := v.keepable(name, value)
	if err != nil || has {
		return there, err
	}
	learn(map[string]string{name: value})
	made, err := caller.create(ctx, name, value)
	if err != nil {
		return "", err
	}
	if !made {
		there, has, why, err := caller.get(ctx, name)
		switch {
		case err != nil:
			return "", err
		case why != nil:
			return "", fmt.Errorf("%s exists in %s and %s: %s", name, caller, why.text, why.fix)
		case !has || strings.TrimSpace(there) == "":
			return "", fmt.Errorf("%s exists in %s and is not given to this identity, or is empty: let the identity read it, or remove it there where no cluster was built with it", name, caller)
		}
		value = there
	}
	v.put(name, value, made)
	return value, nil
}

// Results of Keep.
const (
	KeptUnchanged = "unchanged"
	KeptCreated   = "created"
	KeptUpdated   = "updated"
)

// Keep has a secret in the cluster's path in Infisical be of this value: one that is equal is left alone, one that is there gets
// another version, and one that is not there is made. It refuses what Establish refuses.
func (v Values) Keep(ctx context.Context, name, value string) (result string, err error) {
	caller, there, has, err := v.keepable(name, value)
	switch {
	case err != nil:
		return "", err
	case has && there == value:
		return KeptUnchanged, nil
	}
	learn(map[string]string{name: value})
	created, err := caller.put(ctx, name, value, has)
	if err != nil {
		return "", err
	}
	v.put(name, value, true)
	if created {
		return KeptCreated, nil
	}
	return KeptUpdated, nil
}

// put holds a secret that is in Infisical now; written says that this process has written it there.
func (v Values) put(name, value string, written bool) {
	v.Add(map[string]string{name: value}, SourceInfisical)
	k := v.kept()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written = k.written || written
}

// Kept tells whether Establish or Keep has written something to Infisical, so that this is known to be possible.
func (v Values) Kept() bool {
	k := v.kept()
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.written
}

// keepable says through whom a secret can be kept in Infisical, and what is there already; its error, why that cannot be.
func (v Values) keepable(name, value string) (caller *session, there string, has bool, err error) {
	k := v.kept()
	k.mu.RLock()
	caller, source, there := k.caller, k.sources[name], k.values[name]
	k.mu.RUnlock()
	switch {
	case caller == nil:
		return nil, "", false, fmt.Errorf("%s cannot be kept: the cluster has no Infisical", name)
	case source == SourceSOPS:
		return nil, "", false, fmt.Errorf("%s cannot be kept in Infisical: the SOPS file holds it", name)
	case strings.TrimSpace(value) == "":
		return nil, "", false, fmt.Errorf("%s cannot be kept: its value is empty", name)
	case strings.TrimSpace(value) != strings.TrimSuffix(value, "\n"):
		return nil, "", false, fmt.Errorf("%s cannot be kept: Infisical would trim the white space around its value", name)
	}
	return caller, there, source == SourceInfisical, nil
}

// String names the secrets.
func (v Values) String() string {
	return fmt.Sprintf("secrets (values hidden): %s", strings.Join(v.names(), ", "))
}

// GoString is String.
func (v Values) GoString() string { return v.String() }

// Format is String under any verb.
func (v Values) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.String()) }

// LogValue is String for slog.
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalJSON is String for JSON.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// MarshalYAML is String for YAML.
func (v Values) MarshalYAML() (any, error) { return v.String(), nil }
