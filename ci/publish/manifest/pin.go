package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// pin is a digest under a key of its own. Charts and kustomize prefer it to the tag beside it.
type pin struct {
	key   string
	value *yaml.Node
}

// pinKeys are the keys that hold a digest in the values of charts, in lower case and without separators; "sha" is that
// of Grafana's and Prometheus's charts.
var pinKeys = []string{"digest", "sha", "sha256", "sha512", "shasum", "hash", "imagedigest", "imagesha", "imagesha256", "imagehash", "tagdigest"}

// pinsOf returns the keys of a mapping that hold a digest or are meant to, "digest" first. A text that is a digest with
// its algorithm counts under every key but those that hold a tag or a name.
func pinsOf(mapping *yaml.Node) []pin {
	var all []pin
	entries := pairs(mapping)
	for _, known := range pinKeys {
		for _, p := range entries {
			if pinKey(p.key) == known && resolve(p.value).Kind == yaml.ScalarNode {
				all = append(all, pin{p.key, resolve(p.value)})
			}
		}
	}
	known := len(all)
	for _, p := range entries {
		value := strings.TrimPrefix(strings.TrimSpace(stringValue(resolve(p.value))), "@")
		if checkDigest(strings.ToLower(value)) == nil && !containsKey(all[:known], p.key) && p.key != "tag" && p.key != "newTag" {
			all = append(all, pin{p.key, resolve(p.value)})
		}
	}
	return all
}

var separators = strings.NewReplacer("-", "", "_", "")

func pinKey(key string) string { return strings.ToLower(separators.Replace(key)) }

func containsKey(pins []pin, key string) bool {
	for _, p := range pins {
		if p.key == key {
			return true
		}
	}
	return false
}

// digest is the pin's value with its algorithm, "" where there is none.
func (p pin) digest() string {
	value := strings.TrimPrefix(strings.TrimSpace(stringValue(p.value)), "@")
	if p.isBare() && value != "" && !strings.Contains(value, ":") {
		return "sha256:" + value
	}
	return value
}

// isBare reports whether the key wants hexadecimal digits without the name of their algorithm.
func (p pin) isBare() bool {
	return strings.HasPrefix(pinKey(p.key), "sha") && !strings.Contains(stringValue(p.value), ":")
}

// spell is a digest as the key wants it.
func (p pin) spell(digest string) string {
	if p.isBare() {
		return strings.TrimPrefix(digest, "sha256:")
	}
	return digest
}
