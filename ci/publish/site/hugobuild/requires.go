package hugobuild

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// requirement is what a theme, or the site itself, asks of Hugo's version, and this Hugo is not. Versions are in semver's form,
// empty where nothing is asked.
type requirement struct{ who, least, most string }

var (
	// Hugo's own words, also for min_version of a theme.toml, which it takes for a module's min. Whatever it finds, it builds
	// on. Source: modules/collect.go and modules/config.go of Hugo v0.165.0.
	incompatible = regexp.MustCompile(`Module "([^"]+)" is not compatible with this Hugo version: (?:Min v?([0-9.]+)|Max v?([0-9.]+)|v?([0-9.]+)[^/\s]*/v?([0-9.]+))`)
	// An old Hugo does not say what is asked of it. Source: modules/collect.go of Hugo v0.110.0.
	unsaid      = regexp.MustCompile(`Module "([^"]+)" is not compatible with this Hugo version; run`)
	hugoVersion = regexp.MustCompile(`^hugo v([0-9]+\.[0-9]+\.[0-9]+)`)
)

// requirements are those that Hugo says it does not meet.
func requirements(said string) []requirement {
	var found []requirement
	for _, match := range incompatible.FindAllStringSubmatch(said, -1) {
		r := requirementOf(match[1])
		r.least, r.most = canonical(match[2]+match[4]), canonical(match[3]+match[5])
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	for _, match := range unsaid.FindAllStringSubmatch(said, -1) {
		if r := requirementOf(match[1]); !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

func requirementOf(module string) requirement {
	if module == "project" {
		return requirement{who: "the site's configuration"}
	}
	return requirement{who: "the theme " + module}
}

func canonical(version string) string { return semver.Canonical("v" + version) }

func (r requirement) String() string {
	least, most := strings.TrimPrefix(r.least, "v"), strings.TrimPrefix(r.most, "v")
	switch {
	case r.unsaid():
		return r.who + " asks for another Hugo, which hugo mod graph shows"
	case most == "":
		return r.who + " asks for Hugo " + least + " or newer"
	case least == "":
		return r.who + " asks for Hugo " + most + " or older"
	default:
		return r.who + " asks for Hugo " + least + " to " + most
	}
}

func (r requirement) unsaid() bool { return r.least == "" && r.most == "" }

// met says whether a version is within what is asked for.
func (r requirement) met(version string) bool {
	return !r.unsaid() && (r.least == "" || semver.Compare(version, r.least) >= 0) && (r.most == "" || semver.Compare(version, r.most) <= 0)
}

// check compares what is asked for with the version that is used and who asked for that. Too old a Hugo is an error: pages may
// lack anything. Too new a one is a warning, since many a theme names the last version that it was tried with.
func check(asked []requirement, used hugoversion.Choice) (warning string, err error) {
	version := "v" + used.Version
	asked = slices.DeleteFunc(slices.Clone(asked), func(r requirement) bool { return r.met(version) })
	if len(asked) == 0 {
		return "", nil
	}
	tooOld := slices.DeleteFunc(slices.Clone(asked), func(r requirement) bool { return r.unsaid() || semver.Compare(version, r.least) >= 0 })
	said := make([]string, len(asked))
	for i, r := range asked {
		said[i] = r.String()
	}
	text := fmt.Sprintf("%s, and %s names %s: %s", strings.Join(said, "; "), used.From, used.Version, wayOut(asked, tooOld))
	if len(tooOld) > 0 {
		return "", errors.New(text)
	}
	return text, nil
}

// wayOut is the nearest version that all who ask are content with.
func wayOut(asked, tooOld []requirement) string {
	if slices.ContainsFunc(asked, requirement.unsaid) {
		return hugoversion.Fix("") + ", or take another release of the theme"
	}
	var best string
	if len(tooOld) > 0 {
		best = slices.MaxFunc(tooOld, func(a, b requirement) int { return semver.Compare(a.least, b.least) }).least
	} else {
		best = slices.MinFunc(asked, func(a, b requirement) int { return semver.Compare(a.most, b.most) }).most
	}
	if slices.ContainsFunc(asked, func(r requirement) bool { return !r.met(best) }) {
		return "no version is right for all of them; take other releases of the themes"
	}
	return hugoversion.Fix(strings.TrimPrefix(best, "v")) + ", or take another release of the theme"
}
