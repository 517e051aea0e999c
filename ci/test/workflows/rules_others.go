package workflows

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Rules about what comes from elsewhere into a run: images, caches, and the names and texts that conditions trust. They are audits of
// zizmor 1.x: unpinned-images, cache-poisoning, bot-conditions, unsound-condition, unsound-contains, overprovisioned-secrets,
// unredacted-secrets, insecure-commands.

var digested = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// A job's own container and its services run beside its secrets.
func images(f *File, tell func(*yaml.Node, string, ...any)) {
	check := func(image *yaml.Node) {
		if image != nil && image.Kind == yaml.ScalarNode && !digested.MatchString(image.Value) {
			tell(image, "%s can become another image: name its digest, as in image:tag@sha256:…", image.Value)
		}
	}
	for _, job := range f.jobs() {
		container := get(job.node, "container")
		if container != nil && container.Kind == yaml.ScalarNode {
			check(container)
		}
		check(get(container, "image"))
		for _, service := range pairs(get(job.node, "services")) {
			check(get(service.node, "image"))
		}
	}
}

// caching are the actions that restore a cache unless they are told not to, by the name of that input; "" where it is all that they do.
var caching = map[string]string{"actions/cache": "", "actions/cache/restore": "", "actions/setup-go": "cache", "docker/build-push-action": "cache-from",
	"dagger/dagger-for-github": "cloud-token"}

// Whoever can run a workflow on the default branch can leave something in a cache, which a release would then be made of, or which would
// run beside secrets.
func caches(f *File, tell func(*yaml.Node, string, ...any)) {
	releases := f.on("release") || get(get(get(f.root, "on"), "push"), "tags") != nil
	for _, job := range f.jobs() {
		what := "a job with secrets runs"
		switch {
		case releases:
			what = "a release is made here, of"
		case get(job.node, "environment") == nil && !slices.ContainsFunc(scalars(job.node), func(node *yaml.Node) bool { return givenSecret.MatchString(node.Value) }):
			continue
		}
		for _, step := range steps(job.node) {
			if uses := get(step, "uses"); uses != nil && restores(step) {
				name, _, _ := strings.Cut(uses.Value, "@")
				tell(uses, "%s what %s finds in a cache: do without", what, name)
			}
		}
	}
}

// restores says whether a step restores a cache.
func restores(step *yaml.Node) bool {
	name, _, _ := strings.Cut(text(step, "uses"), "@")
	input, known := caching[name]
	value := text(step, "with", input)
	switch {
	case !known:
		return false
	case input == "":
		return true
	case name == "actions/setup-go": // by default
		return value != "false"
	}
	return value != "" && value != "false"
}

var (
	anActor    = regexp.MustCompile(`github\.(actor|triggering_actor|actor_id)\b`)
	inAText    = regexp.MustCompile(`contains\(\s*'[^']*[ ,][^']*'\s*,`)
	expression = regexp.MustCompile(`\$\{\{`)
)

// A condition holds where it is empty of meaning, too.
func conditions(f *File, tell func(*yaml.Node, string, ...any)) {
	check := func(condition *yaml.Node) {
		if condition == nil {
			return
		}
		if anActor.MatchString(condition.Value) {
			tell(condition, "who pushed last to a pull request is not who wrote it: ask for github.event.pull_request.user.login")
		}
		if inAText.MatchString(condition.Value) {
			tell(condition, "contains() of a text is true for each part of it: write a list with fromJSON('[…]')")
		}
		block := condition.Style == yaml.LiteralStyle || condition.Style == yaml.FoldedStyle
		if block && expression.MatchString(condition.Value) && strings.HasSuffix(condition.Value, "\n") {
			tell(condition, "the line's end behind ${{ }} makes a text of it, which is always true: leave ${{ }} out, or write >- for >")
		}
	}
	for _, job := range f.jobs() {
		check(get(job.node, "if"))
	}
	for _, step := range f.allSteps() {
		check(get(step, "if"))
	}
}

var (
	allSecrets   = regexp.MustCompile(`(?i)toJSON\(\s*secrets\s*\)|secrets\[`)
	partOfSecret = regexp.MustCompile(`(?i)fromJSON\(\s*secrets\.`)
	unsecure     = "ACTIONS_ALLOW_UNSECURE_COMMANDS"
)

// GitHub hides a secret in logs by its whole text, and the old commands let a log set variables.
func disclosure(f *File, tell func(*yaml.Node, string, ...any)) {
	var walk func(node *yaml.Node)
	walk = func(node *yaml.Node) {
		if node.Kind == yaml.ScalarNode {
			if allSecrets.MatchString(node.Value) {
				tell(node, "all secrets come here: name the one that is needed, as in secrets.TOKEN")
			}
			if partOfSecret.MatchString(node.Value) {
				tell(node, "a part of a secret is not hidden in logs: keep each value as a secret of its own")
			}
			if node.Value == unsecure {
				tell(node, "whatever a step prints could set variables of the next one: leave %s out", unsecure)
			}
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	walk(f.root)
}
