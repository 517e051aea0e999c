package infisical

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Subjects and actions of permissions. Source: Infisical 0508035, backend/src/ee/services/permission/project-permission.ts
// (ProjectPermissionSub, ProjectPermissionSecretActions).
const (
	subjectSecrets = "secrets"
	subjectFolders = "secret-folders"

	actionRead     = "read" // describeSecret and readValue in one, as roles of before 2025 have it
	actionDescribe = "describeSecret"
	actionValue    = "readValue"
	actionCreate   = "create"
	actionEdit     = "edit"
	actionDelete   = "delete"
)

// actions are those of each subject.
var actions = map[string][]string{
	subjectSecrets: {actionRead, actionDescribe, actionValue, actionCreate, actionEdit, actionDelete},
	subjectFolders: {actionCreate, actionEdit, actionDelete},
}

// Permission is one rule of a custom role: what may be done with what, and where. Of Infisical's conditions it has $glob.
type Permission struct {
	Subject  string   `yaml:"subject"` // "secrets" or "secret-folders"
	Actions  []string `yaml:"actions"`
	Inverted bool     `yaml:"inverted,omitempty"` // it forbids what rules before it allow

	// Globs, each of which is empty where everything fits.
	Environment string `yaml:"environment,omitempty"`
	SecretPath  string `yaml:"secretPath,omitempty"`
	SecretName  string `yaml:"secretName,omitempty"`
}

// Reading is the rule of a role that may read one folder and nothing else.
func Reading(environment, folder string) Permission {
	return Permission{Subject: subjectSecrets, Actions: []string{actionDescribe, actionValue}, Environment: environment, SecretPath: folder}
}

// thing is what a permission is asked for. Without a path it is any of its subject.
type thing struct{ environment, path, name string }

// everything is what an identity may do that has no rules of its own.
var everything = []Permission{
	{Subject: subjectSecrets, Actions: []string{actionDescribe, actionValue, actionCreate, actionEdit, actionDelete}},
	{Subject: subjectFolders, Actions: actions[subjectFolders]},
}

// elsewhere is the path that the fault infisical-paths binds identities to where it names none.
const elsewhere = "/elsewhere/**"

// rules are those of an identity's roles, with what the faults make of them.
func (c Client) rules(faults profile.Faults) []Permission {
	rules := c.Permissions
	switch {
	case c.ReadOnly:
		rules = []Permission{{Subject: subjectSecrets, Actions: []string{actionDescribe, actionValue}}}
	case len(rules) == 0: // a written world.yaml has an empty list
		rules = everything
	}
	rules = slices.Clone(rules)
	if glob, bound := faults[profile.InfisicalPaths]; bound {
		if glob == "" {
			glob = elsewhere
		}
		for i := range rules {
			rules[i].SecretPath = glob
		}
	}
	if name, hidden := faults[profile.SecretHidden]; hidden {
		if name == profile.AllSecrets {
			name = ""
		}
		rules = append(rules, Permission{Subject: subjectSecrets, Actions: []string{actionRead, actionValue}, Inverted: true, SecretName: name})
	}
	return rules
}

// check finds what no role could say.
func (p Permission) check() error {
	known, is := actions[p.Subject]
	if !is {
		return fmt.Errorf("a permission of the simulated Infisical is on %q: there are %s and %s", p.Subject, subjectSecrets, subjectFolders)
	}
	for _, action := range p.Actions {
		if !slices.Contains(known, action) {
			return fmt.Errorf("a permission of the simulated Infisical on %s has the action %q: there are %s", p.Subject, action, strings.Join(known, ", "))
		}
	}
	for _, glob := range []string{p.Environment, p.SecretPath, p.SecretName} {
		if err := checkGlob(glob); err != nil {
			return err
		}
	}
	return nil
}

// can tells whether the last rule that fits allows an action. Conditions do not count where no thing is named, and then what is forbidden
// under conditions is not. Source: CASL (@casl/ability), Rule.matchesConditions and PureAbility.relevantRuleFor.
func (who *identity) can(subject, action string, what *thing) bool {
	for _, rule := range slices.Backward(who.permissions) {
		if rule.Subject != subject || !slices.Contains(rule.Actions, action) {
			continue
		}
		if what == nil {
			if rule.Inverted && rule.Environment+rule.SecretPath+rule.SecretName != "" {
				continue
			}
			return !rule.Inverted
		}
		if glob(rule.Environment, what.environment) && glob(rule.SecretPath, what.path) && glob(rule.SecretName, what.name) {
			return !rule.Inverted
		}
	}
	return false
}

// sees tells whether a secret may be listed (actionDescribe) or its value be read (actionValue). Source: Infisical 0508035,
// backend/src/ee/services/permission/permission-fns.ts (hasSecretReadValueOrDescribePermission).
func (who *identity) sees(action string, what *thing) bool {
	return who.can(subjectSecrets, action, what) || who.can(subjectSecrets, actionRead, what)
}

// notAllowed is the refusal of an action. Source: Infisical 036d891, backend/src/server/plugins/error-handler.ts (ForbiddenError).
func notAllowed(subject, action string) *refusal {
	return forbidden("You are not allowed to %s on %s", action, subject)
}

// glob tells whether a text fits one; an empty glob fits everything. Source: Infisical, backend/src/lib/casl/index.ts, which asks picomatch
// with strictSlashes off.
func glob(pattern, text string) bool {
	return pattern == "" || globSegments(strings.Split(pattern, "/"), strings.Split(text, "/"))
}

func globSegments(pattern, text []string) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	if pattern[0] == "**" {
		return globSegments(pattern[1:], text) || len(text) > 0 && globSegments(pattern, text[1:])
	}
	if len(text) == 0 {
		return false
	}
	fits, _ := path.Match(pattern[0], text[0]) // checkGlob has seen it
	return fits && globSegments(pattern[1:], text[1:])
}

// checkGlob refuses what is another thing to picomatch than to globSegments.
func checkGlob(pattern string) error {
	for segment := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(segment, ""); err != nil || strings.ContainsAny(segment, "{}()!+@|\\") || segment != "**" && strings.Contains(segment, "**") {
			return fmt.Errorf("the simulated Infisical knows *, ?, [ ] and a segment ** in globs, and nothing else: %q", pattern)
		}
	}
	return nil
}
