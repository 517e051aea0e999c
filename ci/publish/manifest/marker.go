package manifest

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// marker is the comment by which Flux's image automation finds what it writes, with the ImagePolicy's namespace and name:
// {"$imagepolicy": "flux-system:blog:tag"}. Like kyaml (fieldmeta.Read), it is looked for beside and above a field.
var marker = regexp.MustCompile(`"?\$imagepolicy"?\s*:\s*"?([^":\s]+:[^":\s}]+)`)

// policyOf is the ImagePolicy that the comments of these nodes name, "" where none does.
func policyOf(nodes []*yaml.Node) string {
	for _, n := range nodes {
		for _, comment := range []string{n.LineComment, n.HeadComment} {
			if found := marker.FindStringSubmatch(comment); found != nil {
				return found[1]
			}
		}
	}
	return ""
}
