package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// buildType says how the rest is to be read; docs/releases.md is its text.
const buildType = "https://tazlab.net/castle/release/v1"

// predicate is the provenance: SLSA v1, source github.com/slsa-framework/slsa, docs/spec/v1.0/provenance.md.
func (o Options) predicate(finished time.Time) ([]byte, error) {
	parameters, err := structpb.NewStruct(map[string]any{
		"version": o.Version, "source": o.Source, "commit": o.Commit, "image": o.Image, "rehearsal": o.Rehearsal,
	})
	if err != nil {
		return nil, err
	}
	made := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: "git+" + o.Source, Digest: map[string]string{"gitCommit": o.Commit}}},
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: o.Builder},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(o.Began), FinishedOn: timestamppb.New(finished)},
		},
	}
	for _, base := range o.Bases {
		name, digest, _ := strings.Cut(base, "@")
		algorithm, hex, _ := strings.Cut(digest, ":")
		dependency := &intoto.ResourceDescriptor{Uri: "docker://" + name}
		if hex != "" {
			dependency.Digest = map[string]string{algorithm: hex}
		} else {
			dependency.Name = name
		}
		made.BuildDefinition.ResolvedDependencies = append(made.BuildDefinition.ResolvedDependencies, dependency)
	}
	if err := made.Validate(); err != nil {
		return nil, fmt.Errorf("the provenance: %w", err)
	}
	text, err := protojson.Marshal(made)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // protojson writes spaces at random
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

// built is what a provenance says.
type built struct{ version, source, commit, builder string }

// readPredicate reads one. Errors say what is wrong with it.
func readPredicate(text []byte) (built, error) {
	var read provenance.Provenance
	if err := protojson.Unmarshal(text, &read); err != nil {
		return built{}, fmt.Errorf("it is no SLSA provenance v1: %w", err)
	}
	if err := read.Validate(); err != nil {
		return built{}, fmt.Errorf("it is no whole SLSA provenance v1: %w", err)
	}
	if kind := read.BuildDefinition.BuildType; kind != buildType {
		return built{}, fmt.Errorf("it is of the build type %s, not %s", kind, buildType)
	}
	parameters := read.BuildDefinition.ExternalParameters.AsMap()
	parameter := func(key string) string { value, _ := parameters[key].(string); return value }
	found := built{parameter("version"), parameter("source"), parameter("commit"), read.RunDetails.Builder.Id}
	if !slices.ContainsFunc(read.BuildDefinition.ResolvedDependencies, func(d *intoto.ResourceDescriptor) bool { return d.Digest["gitCommit"] == found.commit }) {
		return built{}, fmt.Errorf("it does not name the commit %q among what was built from", found.commit)
	}
	return found, nil
}
