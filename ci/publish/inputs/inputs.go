// Package inputs names what a published image was made from. That is the image's identity: an image that was made
// from the same inputs may be the published one, even where a build of today has another digest, as it has when a
// template asks for the time. The inputs are annotations of the image's manifest, which one small request reads. They
// prove nothing: whoever may push to the registry can write them.
package inputs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Keys of the annotations in a manifest or index, and of the labels in an image's configuration.
const (
	Key       = "net.tazlab.castle.inputs"        // the inputs as JSON
	KeyDigest = "net.tazlab.castle.inputs.digest" // their digest
)

// Labels that are no inputs, so that two images of the same inputs may differ in them.
const (
	KeySource   = "org.opencontainers.image.source" // the remote of the clone that was published
	KeyHugoFrom = "net.tazlab.castle.hugo.from"     // who asked for the version of Hugo
)

// Incidental are these labels.
var Incidental = []string{KeySource, KeyHugoFrom}

// Inputs are all that decides what a published image is. The zero value is an image of unknown inputs.
type Inputs struct {
	Commit    string   `json:"commit,omitempty"`    // whole SHA
	Path      string   `json:"path,omitempty"`      // of the site in the commit
	Hugo      string   `json:"hugo,omitempty"`      // name and digest of the image that built the site
	Base      string   `json:"base,omitempty"`      // name and digest of the image below the site
	Castle    string   `json:"castle,omitempty"`    // castle's version
	Platforms []string `json:"platforms,omitempty"` // sorted
	Port      int      `json:"port,omitempty"`
	BaseURL   string   `json:"baseURL,omitempty"` // where it is not the site's own
	Headers   string   `json:"headers,omitempty"` // the mode, or a policy of the user's own
	// AfterBuild are the commands that ran after Hugo. The lock file of their programs is the commit's.
	AfterBuild []string `json:"afterBuild,omitempty"`
}

// known reports whether there is anything to compare.
func (i Inputs) known() bool { return i.Commit != "" }

// Same reports whether both are known and equal.
func (i Inputs) Same(other Inputs) bool {
	return i.known() && other.known() && i.text() == other.text()
}

func (i Inputs) text() string {
	data, err := json.Marshal(i)
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return string(data)
}

// Annotations are the entries for a manifest's annotations or a configuration's labels; none for unknown inputs.
func (i Inputs) Annotations() map[string]string {
	if !i.known() {
		return nil
	}
	sum := sha256.Sum256([]byte(i.text()))
	return map[string]string{Key: i.text(), KeyDigest: "sha256:" + hex.EncodeToString(sum[:])}
}

// OfManifest reads the inputs from a manifest or index as a registry serves it. What another program made, or an earlier
// castle, has unknown inputs.
func OfManifest(manifest []byte) Inputs {
	var annotated struct {
		Annotations map[string]string `json:"annotations"`
	}
	var read Inputs
	if json.Unmarshal(manifest, &annotated) != nil || json.Unmarshal([]byte(annotated.Annotations[Key]), &read) != nil {
		return Inputs{}
	}
	return read
}

// Differences says in one phrase each what went into now and not into was.
func (i Inputs) Differences(was Inputs) []string {
	if !was.known() {
		return []string{"it does not say what it was made from"}
	}
	var phrases []string
	for _, row := range []struct {
		name     string
		was, now string
	}{
		{"the commit", was.Commit, i.Commit},
		{"the site's path", was.Path, i.Path},
		{"Hugo's image", was.Hugo, i.Hugo},
		{"the base image", was.Base, i.Base},
		{"castle's version", was.Castle, i.Castle},
		{"the platforms", strings.Join(was.Platforms, ", "), strings.Join(i.Platforms, ", ")},
		{"the port", fmt.Sprint(was.Port), fmt.Sprint(i.Port)},
		{"the base URL", was.BaseURL, i.BaseURL},
		{"the headers", was.Headers, i.Headers},
		{"afterBuild", strings.Join(was.AfterBuild, "; "), strings.Join(i.AfterBuild, "; ")},
	} {
		if row.was != row.now {
			phrases = append(phrases, fmt.Sprintf("%s was %s and is %s", row.name, orNone(row.was), orNone(row.now)))
		}
	}
	return phrases
}

func orNone(text string) string {
	if text == "" {
		return "the default"
	}
	return text
}
