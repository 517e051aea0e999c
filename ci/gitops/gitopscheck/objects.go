package gitopscheck

import (
	"encoding/json"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
	"tazlab.net/castle/ci/gitops/gitopscheck/schemas"
)

func (c *check) schema() {
	c.unchecked = map[string]int{}
	for _, part := range c.parts() {
		if part.by != nil && part.by.Suspended() {
			continue
		}
		for _, object := range part.objects {
			if !manifests.IsEncrypted(object.Object) {
				c.fits(object)
			}
		}
	}
}

// fits holds an object against the schema of its kind.
func (c *check) fits(object *manifests.Object) {
	result, err := c.schemas.Check(object.Object)
	switch {
	case err != nil:
		c.note("%s was not checked: %v", object.ID(), err)
		return
	case result.Verdict == schemas.Unknown:
		c.unchecked[object.GetAPIVersion()+" "+object.GetKind()]++
		return
	case result.Verdict == schemas.Unserved:
		kind := object.GetAPIVersion() + " " + object.GetKind()
		c.on(object, []string{"apiVersion"}, ruleAPIVersion, kind, "%s: %s has no %s: write a version that it serves", object.ID(), result.Source, kind)
		return
	}
	rule := ruleSchema
	if !result.Exact {
		rule = ruleSchemaRelease
	}
	for _, problem := range result.Problems {
		if !problem.Surplus && hasUnknown(manifests.Value(object.Object, problem.Path...)) {
			continue
		}
		field := strings.Join(problem.Path, ".")
		if field == "" {
			field = "the object"
		}
		c.on(object, problem.Path, rule, object.GetKind()+" "+withoutIndexes(problem.Path)+" "+problem.Message, "%s: %s: %s (%s)", object.ID(), field, problem.Message, result.Source)
	}
}

// hasUnknown says that part of a value is known to the cluster only.
func hasUnknown(value any) bool {
	text, err := json.Marshal(value)
	return err == nil && strings.Contains(string(text), manifests.UnknownValue)
}

// withoutIndexes is a path in which each entry of a list is any.
func withoutIndexes(path []string) string {
	steps := make([]string, len(path))
	for i, step := range path {
		if strings.Trim(step, "0123456789") == "" {
			step = "*"
		}
		steps[i] = step
	}
	return strings.Join(steps, ".")
}
