package hugobuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// MissedAfterBuild is a warning where a site without afterBuild has programs that its author runs after Hugo: by the
// scripts of package.json, or because its pages load the search that Pagefind makes. It is empty for any other site.
func MissedAfterBuild(site, built string) (string, error) {
	list, err := nearestList(site)
	if err != nil {
		return "", err
	}
	if name, command := list.afterHugo(); command != "" {
		return fmt.Sprintf("the script %s of package.json runs after Hugo, and castle runs no scripts, so what it makes is not in the image: "+
			"write afterBuild: [%s] for the site in castle.yaml", name, quoted(command)), nil
	}
	const search = "write afterBuild: [pagefind --site public] for the site in castle.yaml"
	if isThere(built, pagefind) {
		return "", nil
	}
	if list.has(pagefind) {
		return "package.json has Pagefind, and nothing runs it after Hugo, so that the image has no search: " + search, nil
	}
	page, err := loadsPagefind(built)
	if err != nil || page == "" {
		return "", err
	}
	return fmt.Sprintf("%s loads the search that Pagefind makes after Hugo, and the image has none: run npm install --save-dev pagefind, "+
		"commit package.json and package-lock.json, and %s", page, search), nil
}

// pagefind is the program, its package, and the folder that it makes.
const pagefind = "pagefind"

// listed is what is read of a package.json.
type listed struct {
	Scripts, Dependencies, DevDependencies, OptionalDependencies map[string]string
}

func (p listed) has(name string) bool {
	return p.Dependencies[name]+p.DevDependencies[name]+p.OptionalDependencies[name] != ""
}

// nearestList is the package.json of the site, or the nearest above it.
func nearestList(site string) (list listed, err error) {
	for folder := site; ; folder = filepath.Dir(folder) {
		data, err := os.ReadFile(filepath.Join(folder, packageList))
		if err == nil {
			// A list that castle installs from was read before; of another one nothing is asked.
			_ = json.Unmarshal(data, &list)
			return list, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return listed{}, ignoreMissing(err)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// callsHugo is a script's part that builds the site.
var callsHugo = regexp.MustCompile(`^(?:npx +)?hugo(?: |$)`)

// deploys is a command that does not change the site, but takes it somewhere or shows it.
var deploys = regexp.MustCompile(`^(?:npx +(?:-\S+ +)*)?(?:gh-pages|firebase|netlify|vercel|wrangler|surge|aws|gcloud|gsutil|rsync|scp|ssh|git|serve|http-server|echo)(?: |$)`)

// afterHugo is the script that runs something behind Hugo, and what that is: "hugo && pagefind --site public", or a
// postbuild beside a build that is Hugo.
func (p listed) afterHugo() (name, command string) {
	for _, name := range sortedKeys(p.Scripts) {
		parts := strings.Split(p.Scripts[name], "&&")
		for i, part := range parts {
			if !callsHugo.MatchString(strings.TrimSpace(part)) || strings.Contains(part, "hugo server") {
				continue
			}
			if behind := strings.TrimSpace(strings.Join(parts[i+1:], "&&")); behind != "" && !deploys.MatchString(behind) {
				return name, behind
			}
			if after := strings.TrimSpace(p.Scripts["post"+name]); after != "" && !deploys.MatchString(after) {
				return "post" + name, after
			}
		}
	}
	return "", ""
}

// quoted is a command as an entry of a list in YAML.
func quoted(command string) string {
	if strings.ContainsAny(command, `,:#[]{}"'&*!|>%@\`+"`") {
		return "'" + strings.ReplaceAll(command, "'", "''") + "'"
	}
	return command
}

// loads is a page's or script's reference to what Pagefind makes. In a text about it the quotes are escaped.
var loads = regexp.MustCompile("[\"'=(`][^\"'=(`\\s<>&]*/?pagefind/pagefind[\\w.-]*\\.(?:js|css)")

// loadsPagefind is the first page or script of a built site that does.
func loadsPagefind(built string) (string, error) {
	return firstFile(built, func(name string, entry fs.DirEntry) (bool, error) {
		switch strings.ToLower(filepath.Ext(name)) {
		case ".html", ".htm", ".js", ".mjs":
		default:
			return false, nil
		}
		if !entry.Type().IsRegular() {
			return false, nil
		}
		text, err := os.ReadFile(name)
		return bytes.Contains(text, []byte("pagefind/")) && loads.Match(text), err
	})
}
