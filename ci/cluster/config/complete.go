package config

import (
	"cmp"
	"path"
	"reflect"

	"tazlab.net/castle/ci/base/strictyaml"
)

// anyRegion is where a store of another maker than AWS is said to be: it ignores the region, and OpenTofu asks for one.
const anyRegion = "us-east-1"

// complete fills in what a description may leave out.
func (c *Cluster) complete() {
	fill(reflect.ValueOf(c).Elem(), "")
	c.State = c.State.Complete()
	c.Secrets.Infisical = c.Secrets.Infisical.Complete()
}

// Complete fills in what follows from the rest.
func (s State) Complete() State {
	if s.Backend == StateS3 && s.S3.Region == "" {
		s.S3.Region = anyRegion
	}
	return s
}

// Complete fills in the folders of what the cluster itself reads.
func (i Infisical) Complete() Infisical {
	if i.Has() {
		i.FluxPath = cmp.Or(i.FluxPath, path.Join(i.Path, "flux"))
		i.WorkloadsPath = cmp.Or(i.WorkloadsPath, path.Join(i.Path, "workloads"))
	}
	return i
}

// fill gives the fields of a section that have no value their defaults. What a list holds has none.
func fill(section reflect.Value, path string) {
	for i, name := range strictyaml.FieldNames(section.Type()) {
		field, at := section.Field(i), strictyaml.Join(path, name)
		switch value := facts.Of(at).Default; {
		case grammar.IsSection(field.Type()) && facts.Of(at).Instead != "" && field.IsZero(): // there is none
		case grammar.IsSection(field.Type()) && platformOnly[at] != nil && field.IsZero(): // another platform's
		case grammar.IsSection(field.Type()):
			fill(field, at)
		case value != nil && field.IsZero():
			field.Set(reflect.ValueOf(value))
		}
	}
}
