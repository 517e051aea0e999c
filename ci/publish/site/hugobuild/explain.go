package hugobuild

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// reason turns what a program said into one line with the way out; nil when it is not about that.
type reason func(site, said string) error

// reasons are asked in this order: a module that cannot be had is the cause of everything behind it.
var reasons = []reason{goTooOld, moduleUnreachable, themeMissing, programMissing, packageMissing, programRefused, resourceUnreachable, removed}

// explain says why Hugo failed: in a line of castle's own, or else in Hugo's. From is who asked for its version.
func explain(site, from, said string) error {
	said = strings.ReplaceAll(said, strings.TrimSuffix(site, "/")+"/", "")
	for _, reason := range reasons {
		if err := reason(site, said); err != nil {
			return err
		}
	}
	text := orLast(lines(said, hugoError), said)
	if from == hugoversion.Default && unknownToHugo.MatchString(text) {
		return fmt.Errorf("%s\nNothing in the repository names a version of Hugo. If an older one built the site, %s", text, hugoversion.Fix(""))
	}
	return errors.New(text)
}

var (
	hugoError   = regexp.MustCompile(`(?m)^(?:ERROR|Error:) +(.+)$`)
	unreachable = regexp.MustCompile(`(?i)could not resolve host|no such host|connection (?:refused|reset|timed out)|i/o timeout|timeout exceeded|` +
		`network is unreachable|unable to access|dial tcp|certificate|terminal prompts disabled|could not read (?:username|from remote)|` +
		`proxyconnect|EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH`)

	goTooNew      = regexp.MustCompile(`(\S+) requires go >= (\S+) \(running go (\S+?)[;)]`)
	moduleFailure = regexp.MustCompile(`failed to (?:(?:download|list) modules|get \[)`)
	neverReleased = regexp.MustCompile(`unknown revision|invalid version|malformed|invalid pseudo-version`)
	moduleName    = regexp.MustCompile(`(?m)^go: (?:downloading )?([^\s@]+@[^\s:]+):? *(.*(?:\n\t.*)*)`)
	theme         = regexp.MustCompile(`module "([^"]+)" not found in`)
	noBinary      = regexp.MustCompile(`binary with name "([^"]+)" not found`)
	noPackage     = regexp.MustCompile(`(?:Cannot find (?:module|package) '|Could not resolve "|Can't resolve ')([^'"./][^'"]*)['"]`)
	refused       = regexp.MustCompile(`access denied: "([^"]+)" is not whitelisted in policy "([^"]+)"`)
	deprecated    = regexp.MustCompile(`deprecated in (?:Hugo )?v?([0-9]+\.[0-9]+\.[0-9]+)`)
	unknownToHugo = regexp.MustCompile(`can't evaluate field|function "[^"]+" not defined|template for shortcode "[^"]+" not found|partial "[^"]+" not found`)
	remote        = regexp.MustCompile(`(?:Get|Post) "(https?://[^"]+)": (.+)`)
)

func goTooOld(_, said string) error {
	if match := goTooNew.FindStringSubmatch(said); match != nil {
		return fmt.Errorf("%s asks for Go %s, and the Hugo image has Go %s: lower the go line in go.mod, or take an older release of the module",
			match[1], match[2], match[3])
	}
	return nil
}

func moduleUnreachable(_, said string) error {
	if !moduleFailure.MatchString(said) {
		return nil
	}
	match := moduleName.FindStringSubmatch(said)
	if match == nil {
		return nil
	}
	module, cause := match[1], lastLine(match[2]) // the first ones of several lines are who asked for it
	if neverReleased.MatchString(cause) {
		return fmt.Errorf("the Hugo module %s does not exist (%s): correct its version in go.mod, and commit go.mod and go.sum", module, cause)
	}
	return fmt.Errorf("the Hugo module %s cannot be downloaded here (%s): run hugo mod vendor where it can and commit _vendor, "+
		"or name a proxy that has it as module.proxy in Hugo's configuration", module, cause)
}

func themeMissing(_, said string) error {
	match := theme.FindStringSubmatch(said)
	if match == nil {
		return nil
	}
	return fmt.Errorf("the theme %s is not in the commit: add it below themes or as a Git submodule; or, as a Hugo module, "+
		"run hugo mod init and hugo mod get, and commit go.mod and go.sum", match[1])
}

// packageOf are the npm packages of programs that have another name: those that Hugo starts, and what runs after it.
var packageOf = map[string]string{
	"postcss": "postcss-cli", "tailwindcss": "@tailwindcss/cli", "babel": "@babel/cli", "workbox": "workbox-cli",
}

func programMissing(site, said string) error {
	match := noBinary.FindStringSubmatch(said)
	if match == nil {
		return nil
	}
	name := packageOf[match[1]]
	if name == "" {
		return nil
	}
	return notInstalled(site, "the program "+match[1], name)
}

func packageMissing(site, said string) error {
	match := noPackage.FindStringSubmatch(said)
	if match == nil || strings.HasPrefix(match[1], "node:") {
		return nil
	}
	// "bootstrap/js/dist/util" is of bootstrap, "@scope/name/x" of @scope/name.
	parts := strings.SplitN(match[1], "/", 3)
	name := parts[0]
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		name += "/" + parts[1]
	}
	return notInstalled(site, "the npm package "+name, name)
}

func notInstalled(site, what, name string) error {
	if isThere(site, packageList) && !lockedAbove(site) {
		return fmt.Errorf("the site needs %s, and nothing of package.json is installed without a lock file of npm%s: "+
			"run npm install and commit package-lock.json", what, otherLock(site))
	}
	return fmt.Errorf("the site needs %s, which its lock file does not have: run npm install --save-dev %s and commit package.json and package-lock.json",
		what, name)
}

// otherLock says of the lock file of another program than npm that it does not count.
func otherLock(site string) string {
	for _, lock := range []string{"yarn.lock", "pnpm-lock.yaml", "bun.lock"} {
		if isThere(site, lock) {
			return ", which " + lock + " is not"
		}
	}
	return ""
}

// lockedAbove reports whether the site or a folder above it has a lock file.
func lockedAbove(site string) bool {
	for folder := site; !hasLock(folder); folder = filepath.Dir(folder) {
		if folder == filepath.Dir(folder) {
			return false
		}
	}
	return true
}

func programRefused(_, said string) error {
	match := refused.FindStringSubmatch(said)
	if match == nil {
		return nil
	}
	return fmt.Errorf("the site uses %s, which Hugo's policy %s does not allow: allow it in Hugo's configuration", match[1], match[2])
}

func resourceUnreachable(_, said string) error {
	match := remote.FindStringSubmatch(said)
	if match == nil || !unreachable.MatchString(match[2]) {
		return nil
	}
	return fmt.Errorf("%s, which the site fetches while it is built, cannot be reached here (%s): commit the file to the site's assets instead",
		match[1], strings.TrimRight(match[2], "."))
}

// removed tells what an older Hugo knew. The version in which it was deprecated still has it, whatever the release that removed it. Source:
// common/hugo/hugo.go and tpl/tplimpl/embedded of Hugo v0.165.0.
func removed(_, said string) error {
	var failed []string
	pin := ""
	for _, line := range lines(said, hugoError) {
		if line = strings.TrimPrefix(line, "deprecated: "); !slices.Contains(failed, line) && !strings.Contains(line, "error building site: logged ") {
			failed = append(failed, line)
		}
		if match := deprecated.FindStringSubmatch(line); match != nil && (pin == "" || semver.Compare("v"+match[1], "v"+pin) < 0) {
			pin = match[1]
		}
	}
	if pin == "" {
		return nil
	}
	return fmt.Errorf("%s To build the site as it is, pin a version that has it: %s",
		strings.Join(failed, " "), hugoversion.Fix(pin))
}

var (
	npmError   = regexp.MustCompile(`(?m)^npm (?:error|ERR!) (.+)$`)
	npmUnfit   = regexp.MustCompile(`(?m)^npm (?:error|ERR!) ((?:Missing|Invalid): .+)$`)
	npmRequest = regexp.MustCompile(`request to (\S+) failed, reason: *(.*)`)
)

// explainNpm says why npm failed.
func explainNpm(said string) error {
	if match := npmRequest.FindStringSubmatch(said); match != nil {
		return fmt.Errorf("the npm package %s cannot be downloaded here (%s): name a registry that can be reached in a .npmrc beside package.json, "+
			"or commit what the packages make and leave package-lock.json out of the site", packageIn(match[1]), match[2])
	}
	if strings.Contains(said, "are in sync") {
		first := ""
		if found := lines(said, npmUnfit); len(found) > 0 {
			first = fmt.Sprintf(" (%s)", found[0])
		}
		return fmt.Errorf("the lock file does not fit the package.json beside it%s: run npm install in their folder and commit package-lock.json", first)
	}
	found := lines(said, npmError)
	return errors.New("npm ci: " + orLast(found[:min(4, len(found))], said))
}

// packageIn is the package of a registry's address, which may be that of its archive.
func packageIn(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(parsed.Path, "/"), "/-/")
	folder, base := path.Split(name)
	if scope := path.Base(folder); strings.HasPrefix(scope, "@") {
		return scope + "/" + base
	}
	return base
}

func lines(said string, form *regexp.Regexp) []string {
	var found []string
	for _, match := range form.FindAllStringSubmatch(said, -1) {
		found = append(found, strings.TrimSpace(match[1]))
	}
	return found
}

// orLast are the lines, or the last ones of everything where there are none.
func orLast(found []string, said string) string {
	if len(found) == 0 {
		found = strings.Split(strings.TrimSpace(said), "\n")
		found = found[max(0, len(found)-10):]
	}
	return strings.Join(found, "\n")
}
