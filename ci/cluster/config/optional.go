package config

import (
	"encoding/json"
	"reflect"
)

// What a cluster may do without is written as the word none, and is the zero value of its type.

// Has says whether there is a project.
func (i Infisical) Has() bool { return !reflect.ValueOf(i).IsZero() }

// MarshalJSON writes the project, or the word none.
func (i Infisical) MarshalJSON() ([]byte, error) {
	type fields Infisical
	return section(i.Has(), fields(i))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (i *Infisical) UnmarshalJSON(data []byte) error {
	type fields Infisical
	return readSection(data, (*fields)(i))
}

// Has says whether there is a load balancer.
func (l LoadBalancer) Has() bool { return l.Pool != nil }

// MarshalJSON writes the pool, or the word none.
func (l LoadBalancer) MarshalJSON() ([]byte, error) {
	type fields LoadBalancer
	return section(l.Has(), fields(l))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (l *LoadBalancer) UnmarshalJSON(data []byte) error {
	type fields LoadBalancer
	return readSection(data, (*fields)(l))
}

// Has says whether there is storage.
func (s Storage) Has() bool { return s != Storage{} }

// MarshalJSON writes the settings, or the word none.
func (s Storage) MarshalJSON() ([]byte, error) {
	type fields Storage
	return section(s.Has(), fields(s))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (s *Storage) UnmarshalJSON(data []byte) error {
	type fields Storage
	return readSection(data, (*fields)(s))
}

func section(has bool, fields any) ([]byte, error) {
	if !has {
		return json.Marshal(none)
	}
	return json.Marshal(fields)
}

func readSection[T any](data []byte, fields *T) error {
	var zero T
	*fields = zero
	if string(data) == `"`+none+`"` {
		return nil
	}
	return json.Unmarshal(data, fields)
}

// ForRemoval is the description with all that a cluster can have: a layer that cluster.yaml has no more is removed by the module that made
// it, which wants its settings, though nothing depends on them then.
func (c *Cluster) ForRemoval() *Cluster {
	all := *c
	if !all.LoadBalancer.Has() {
		all.LoadBalancer.Pool = []string{}
	}
	if !all.Storage.Has() {
		all.Storage = Storage{Replicas: 1, DataPath: facts.Of("storage.dataPath").Default.(string), StorageClass: facts.Of("storage.storageClass").Default.(string)}
	}
	return &all
}
