package workflows

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Rules about whose code runs where. zizmor has self-hosted-runner and dangerous-triggers for parts of it.

var (
	// hosted are labels of GitHub's own runners, which end with the job.
	hosted = regexp.MustCompile(`^(ubuntu|windows|macos)-[a-z0-9.-]+$`)
	// givenSecret is any but the run's own token, which a pull request gets for reading.
	givenSecret = regexp.MustCompile(`\$\{\{[^}]*\bsecrets\.([A-Za-z_][A-Za-z0-9_]*)`)
)

// A pull request changes the workflow, too: no condition in it, and no check of who wrote it, keeps its code from what the job has.
func unreviewed(f *File, tell func(*yaml.Node, string, ...any)) {
	if !f.on("pull_request") {
		return
	}
	const fix = "do it in another workflow, on main or by workflow_dispatch, behind an environment that allows main only"
	for _, job := range f.jobs() {
		if on := get(job.node, "runs-on"); on != nil && !isHosted(on) {
			tell(on, "code that nobody has reviewed would run on your own runner: %s", fix)
		}
		if environment := get(job.node, "environment"); environment != nil {
			tell(environment, "code that nobody has reviewed would get the secrets of an environment: %s", fix)
		}
		for _, node := range scalars(job.node) {
			for _, secret := range givenSecret.FindAllStringSubmatch(node.Value, -1) {
				if secret[1] != "GITHUB_TOKEN" {
					tell(node, "code that nobody has reviewed would get %s: %s", secret[1], fix)
				}
			}
		}
		for _, scope := range pairs(get(job.node, "permissions")) {
			if scope.node.Value == "write" {
				tell(scope.node, "code that nobody has reviewed could write %s: %s", scope.key.Value, fix)
			}
		}
	}
}

func isHosted(on *yaml.Node) bool {
	if on.Kind == yaml.MappingNode { // a group of runners
		return false
	}
	labels := on.Content
	if on.Kind == yaml.ScalarNode {
		labels = []*yaml.Node{on}
	}
	return !slices.ContainsFunc(labels, func(label *yaml.Node) bool { return !hosted.MatchString(label.Value) })
}

func scalars(node *yaml.Node) (all []*yaml.Node) {
	if node.Kind == yaml.ScalarNode {
		return []*yaml.Node{node}
	}
	for _, child := range node.Content {
		all = append(all, scalars(child)...)
	}
	return all
}

var (
	// certain are expressions that are never empty.
	certain = regexp.MustCompile(`^github\.(repository|sha|ref|ref_name)$`)
	inside  = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)
	literal = regexp.MustCompile(`^'[^']+'$`)
)

// actions/checkout takes an empty repository for the one that the run is of, and an empty ref for its commit: other code than was meant
// would run with the job's secrets.
func source(f *File, tell func(*yaml.Node, string, ...any)) {
	for _, job := range f.jobs() {
		var before []*yaml.Node
		for _, step := range steps(job.node) {
			if strings.HasPrefix(text(step, "uses"), "actions/checkout@") {
				for _, input := range []string{"repository", "ref"} {
					from := get(get(step, "with"), input)
					if from == nil {
						continue
					}
					for _, expression := range inside.FindAllStringSubmatch(from.Value, -1) {
						if mayBeEmpty(expression[1]) && !refused(before, expression[1]) {
							tell(from, "where %s is empty, other code than was meant is checked out: have a step before it fail then, with it in env", expression[1])
						}
					}
				}
			}
			before = append(before, step)
		}
	}
}

// mayBeEmpty says whether an expression has no alternative that is never empty.
func mayBeEmpty(expression string) bool {
	alternatives := strings.Split(expression, "||")
	last := strings.TrimSpace(alternatives[len(alternatives)-1])
	return !certain.MatchString(last) && !literal.MatchString(last)
}

// refused says whether one of the steps is given an expression, and can fail by itself.
func refused(steps []*yaml.Node, expression string) bool {
	return slices.ContainsFunc(steps, func(step *yaml.Node) bool {
		given := slices.ContainsFunc(pairs(get(step, "env")), func(variable part) bool {
			found := inside.FindStringSubmatch(variable.node.Value)
			return found != nil && found[1] == expression
		})
		return given && strings.Contains(text(step, "run"), "exit 1")
	})
}
