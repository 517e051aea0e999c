package workflows

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/test/calls"
)

// Rule is one that every workflow and action keeps.
type Rule struct {
	Name string
	// find tells each place that breaks it.
	find func(f *File, tell func(at *yaml.Node, format string, args ...any))
}

// Rules are all of them. testdata has a bad example of each, by its name.
var Rules = []Rule{
	{"pinned", pinned},
	{"permissions", permissions},
	{"credentials", credentials},
	{"interpolation", interpolation},
	{"timeout", timeout},
	{"concurrency", concurrency},
	{"version", version},
	{"triggers", triggers},
	{"secrets", secrets},
	{"unreviewed", unreviewed},
	{"source", source},
	{"pipefail", pipefail},
	{"images", images},
	{"caches", caches},
	{"conditions", conditions},
	{"disclosure", disclosure},
}

// Check is what is wrong with a file: NAME:LINE: RULE: what, and the fix.
func (f *File) Check() []string {
	var found []string
	for _, rule := range Rules {
		rule.find(f, func(at *yaml.Node, format string, args ...any) {
			found = append(found, fmt.Sprintf("%s:%d: %s: %s", f.Name, at.Line, rule.Name, fmt.Sprintf(format, args...)))
		})
	}
	return found
}

var (
	byCommit = regexp.MustCompile(`^[^@\s]+@[0-9a-f]{40}$`)
	release  = regexp.MustCompile(`^#\s*v\d+(\.\d+)*`)
	newest   = regexp.MustCompile(`@latest\b|\b(curl|wget)\b[^\n]*\|\s*(sudo\s+)?(ba|z)?sh\b`)
	byDigest = regexp.MustCompile(`^docker://.+@sha256:[0-9a-f]{64}$`)
)

// placeholder is castle in the examples: whoever copies one writes the owner and a release there.
const placeholder = "OWNER/castle/"

// A tag can be moved to other code; a commit cannot. The comment is what a person reads, and Renovate keeps.
func pinned(f *File, tell func(*yaml.Node, string, ...any)) {
	check := func(uses *yaml.Node) {
		switch {
		case uses == nil, strings.HasPrefix(uses.Value, "./"), strings.HasPrefix(uses.Value, placeholder), byDigest.MatchString(uses.Value):
		case !byCommit.MatchString(uses.Value):
			tell(uses, "%s can become other code: name the full SHA of a commit, with the version behind it as a comment", uses.Value)
		case !release.MatchString(uses.LineComment):
			tell(uses, "%s has no comment that says its version: write # v1.2.3 behind it", uses.Value)
		}
	}
	for _, step := range f.allSteps() {
		check(get(step, "uses"))
		if script := get(step, "run"); script != nil && newest.MatchString(script.Value) {
			tell(script, "what is run here can become another program: name its version, and compare what was downloaded with a digest")
		}
	}
	for _, job := range f.jobs() {
		check(get(job.node, "uses"))
	}
}

// What the token may do stands at the top, and is nothing but reading; the job that has to write says so itself.
func permissions(f *File, tell func(*yaml.Node, string, ...any)) {
	if f.isAction() {
		return
	}
	top := get(f.root, "permissions")
	if top == nil {
		tell(f.root, "the workflow does not say what its token may do: write permissions: {contents: read} above the jobs")
	} else {
		mayWrite(top, "the whole workflow", tell, func(scope string) string { return "give " + scope + ": write to the job that needs it" })
	}
	for _, job := range f.jobs() {
		if own := get(job.node, "permissions"); own != nil && own.Kind == yaml.ScalarNode {
			tell(own, "job %s has %s: name what it needs, one by one", job.key.Value, own.Value)
		}
	}
}

func mayWrite(permissions *yaml.Node, who string, tell func(*yaml.Node, string, ...any), fix func(string) string) {
	if permissions.Kind == yaml.ScalarNode {
		tell(permissions, "%s has %s: name what it needs, one by one", who, permissions.Value)
	}
	for _, scope := range pairs(permissions) {
		if scope.node.Value == "write" {
			tell(scope.node, "%s may write %s: %s", who, scope.key.Value, fix(scope.key.Value))
		}
	}
}

// Otherwise the token stands in .git/config, where every later step, and the engine, can read it.
func credentials(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, step := range f.allSteps() {
		if uses := get(step, "uses"); uses != nil && strings.HasPrefix(uses.Value, "actions/checkout@") && text(step, "with", "persist-credentials") != "false" {
			tell(uses, "the checkout leaves its token in .git/config: write persist-credentials: false")
		}
	}
}

// What stands in ${{ }} becomes part of the script before a shell reads it, whoever wrote it.
func interpolation(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, step := range f.allSteps() {
		for _, script := range []*yaml.Node{get(step, "run"), get(get(step, "with"), "script")} {
			if script != nil && strings.Contains(script.Value, "${{") {
				tell(script, "the script has ${{ }} in it: hand the value over by env, and use it as \"$NAME\"")
			}
		}
	}
}

// GitHub's own limit is six hours.
func timeout(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, job := range f.jobs() {
		if get(job.node, "uses") == nil && get(job.node, "timeout-minutes") == nil {
			tell(job.key, "job %s may run for six hours: write timeout-minutes", job.key.Value)
		}
	}
}

// mutating are the module's functions that change something outside of the call.
var mutating = []string{
	"publish-blog", "publish", "rollback-blog", "rollback", "create", "destroy", "nuclear-wipe", "remove-node", "drill", "sandbox-reset", "gitops-repo-push",
	"state-unlock", "state-restore", "state-import", "state-migrate", "secrets-rotate-age", "release",
}

// publishing is castle's workflow that a job calls as a whole.
const publishing = "/.github/workflows/publish-blog.yaml"

// changes says what a job changes outside of itself, and where; nothing, where it only looks.
func changes(job *yaml.Node) (at *yaml.Node, what string) {
	if uses := get(job, "uses"); uses != nil {
		if workflow, _, _ := strings.Cut(uses.Value, "@"); strings.HasSuffix(workflow, publishing) {
			return uses, "publish-blog"
		}
	}
	for _, step := range steps(job) {
		script := get(step, "run")
		if script == nil {
			continue
		}
		found, err := calls.InScript([]byte(script.Value))
		if err != nil {
			continue // actionlint's and the call test's business
		}
		for _, call := range found {
			if i := slices.IndexFunc(call.Words, func(word string) bool { return slices.Contains(mutating, word) }); i >= 0 {
				return script, call.Words[i]
			}
		}
	}
	return nil, ""
}

// groups are the concurrency groups that a job is in: its own and the workflow's.
func (f *File) groups(job *yaml.Node) []*yaml.Node {
	return slices.DeleteFunc([]*yaml.Node{get(job, "concurrency"), get(f.root, "concurrency")}, func(n *yaml.Node) bool { return n == nil })
}

// groupName is a group's name up to its first expression: what its runs share whatever the values are.
func groupName(group *yaml.Node) string {
	name := group.Value
	if named := text(group, "group"); named != "" {
		name = named
	}
	name, _, _ = strings.Cut(name, "${{")
	return name
}

// Two runs at once would be refused by castle's own locks; they wait here. One that is cancelled stops in the middle.
func concurrency(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, job := range f.jobs() {
		at, what := changes(job.node)
		if at == nil {
			continue
		}
		groups := f.groups(job.node)
		if len(groups) == 0 && get(job.node, "uses") == nil { // a workflow that is called has its own
			tell(at, "%s changes something, and job %s may run twice at once: give it a concurrency group", what, job.key.Value)
		}
		for _, group := range groups {
			if cancel := text(group, "cancel-in-progress"); cancel != "" && cancel != "false" {
				tell(group, "%s changes something, and would be stopped in the middle: write cancel-in-progress: false", what)
			}
		}
	}
	for _, mistake := range Shared([]*File{f}) {
		tell(mistake.At, "%s", mistake.Text)
	}
}

// Mistake is one that is found between several files.
type Mistake struct {
	File *File
	At   *yaml.Node
	Text string
}

// Shared are the jobs that only look and are in the group of one that changes something, in one repository's files: of the runs that wait
// in a group GitHub keeps the newest, so a look would take the place of a destroy.
func Shared(files []*File) (found []Mistake) {
	changing := map[string]string{}
	each := func(do func(f *File, group *yaml.Node, what string)) {
		for _, f := range files {
			for _, job := range f.jobs() {
				_, what := changes(job.node)
				for _, group := range f.groups(job.node) {
					do(f, group, what)
				}
			}
		}
	}
	each(func(_ *File, group *yaml.Node, what string) {
		if what != "" {
			changing[groupName(group)] = what
		}
	})
	each(func(f *File, group *yaml.Node, what string) {
		if other := changing[groupName(group)]; what == "" && other != "" {
			found = append(found, Mistake{f, group, fmt.Sprintf("a run that only looks would take the place of a %s that waits in this group: give it a group of its own", other)})
		}
	})
	return found
}

var versioned = regexp.MustCompile(`^v?\d+\.\d+\.\d+`)

// A CLI refuses an engine of another version, or starts it instead.
func version(f *File, tell func(*yaml.Node, string, ...any)) {
	check := func(value *yaml.Node) {
		if found := versioned.FindString(value.Value); found != "" && strings.TrimPrefix(found, "v") != strings.TrimPrefix(f.Engine, "v") {
			tell(value, "dagger %s is not the engineVersion of dagger.json, %s", found, f.Engine)
		}
	}
	var walk func(node *yaml.Node)
	walk = func(node *yaml.Node) {
		for _, pair := range pairs(node) {
			above := ""
			if line := pair.key.Line - 2; line >= 0 {
				above = f.lines[line]
			}
			if pair.node.Kind == yaml.ScalarNode && (strings.Contains(strings.ToLower(pair.key.Value), "dagger") || strings.HasSuffix(strings.TrimSpace(above), "depName=dagger/dagger")) {
				check(pair.node)
			}
			if strings.Contains(text(node, "uses"), "dagger/dagger-for-github") && pair.key.Value == "with" {
				if value := get(pair.node, "version"); value != nil {
					check(value)
				}
			}
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	walk(f.root)
}

// These run with the repository's secrets on what somebody else wrote.
func triggers(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, event := range []string{"pull_request_target", "workflow_run"} {
		if f.on(event) {
			tell(get(f.root, "on"), "%s runs with this repository's secrets on what others wrote: use pull_request", event)
		}
	}
}

var holdsSecret = regexp.MustCompile(`\$\{\{[^}]*\b(secrets\.|github\.token\b)`)

// Each step gets the secrets that it needs, and no other.
func secrets(f *File, tell func(*yaml.Node, string, ...any)) {
	environment := func(of *yaml.Node, who string) {
		for _, variable := range pairs(get(of, "env")) {
			if holdsSecret.MatchString(variable.node.Value) {
				tell(variable.node, "every step of %s gets %s: write it into the env of the step that needs it", who, variable.key.Value)
			}
		}
	}
	environment(f.root, "the workflow")
	for _, job := range f.jobs() {
		environment(job.node, "job "+job.key.Value)
		if given := get(job.node, "secrets"); given != nil && given.Value == "inherit" {
			tell(given, "job %s hands over all secrets: name those that the called workflow needs", job.key.Value)
		}
	}
}

// GitHub's default shell takes a pipe's last command for the result; with shell: bash it is the first one that failed.
func pipefail(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, step := range f.allSteps() {
		script := get(step, "run")
		if script == nil || text(step, "shell") == "bash" || text(f.root, "defaults", "run", "shell") == "bash" {
			continue
		}
		if daggerIntoPipe.MatchString(strings.ReplaceAll(script.Value, "\\\n", " ")) {
			tell(script, "a call that fails would pass, since a pipe follows: write shell: bash, which sets pipefail")
		}
	}
}

var daggerIntoPipe = regexp.MustCompile(`(?m)\bdagger\b.*\bcall\b.*[^|]\|[^|]`)
