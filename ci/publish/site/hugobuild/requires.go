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
	hugoVersion  = regexp.MustCompile(`^hugo v([0-9]+\.[0-9]+\.[0-9]+)`)
)

// requirements are those that Hugo says it does not meet.
func requirements(said string) []requirement {
	var found []requirement
	for _, match := range incompatible.FindAllStringSubmatch(said, -1) {
		r := requirement{who: "the theme " + match[1], least: canonical(match[2] + match[4]), most: canonical(match[3] + match[5])}
		if match[1] == "project" {
			r.who = "the site's configuration"
		}
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

func canonical(version string) string { return semver.Canonical("v" + version) }

func (r requirement) String() string {
	least, most := strings.TrimPrefix(r.least, "v"), strings.TrimPrefix(r.most, "v")
	switch {
	case most == "":
		return r.who + " asks for Hugo " + least + " or newer"
	case least == "":
		return r.who + " asks for Hugo " + most + " or older"
	default:
		return r.who + " asks for Hugo " + least + " to " + most
	}
}

// met says whether a version is within what is asked for.
func (r requirement) met(version string) bool {
	return (r.least == "" || semver.Compare(version, r.least) >= 0) && (r.most == "" || semver.Compare(version, r.most) <= 0)
}

// check compares what is asked for with the version that is used and who asked for that. Too old a Hugo is an error: pages may
// lack anything. Too new a one is a warning, since many a theme names the last version that it was tried with.
func check(asked []requirement, used hugoversion.Choice) (warning string, err error) {
	version := "v" + used.Version
	asked = slices.DeleteFunc(slices.Clone(asked), func(r requirement) bool { return r.met(version) })
	if len(asked) == 0 {
		return "", nil
	}
	tooOld := slices.DeleteFunc(slices.Clone(asked), func(r requirement) bool { return semver.Compare(version, r.least) >= 0 })
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
