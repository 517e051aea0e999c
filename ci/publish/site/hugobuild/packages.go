package hugobuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/publish/site/npmlock"
)

// npmTimeout bounds the download of all packages.
const npmTimeout = 15 * time.Minute

// settingsOfNpm are the files beside a lock that decide with it what is installed.
var settingsOfNpm = []string{packageList, ".npmrc"}

const packageList = "package.json"

// PackageFiles are what decides the packages, by their paths in the folder of the lock file: the folder's list,
// either kind of lock, npm's settings, the lists of the folders that the lock links to, and those of workspaces where
// `hugo mod npm pack` puts that of the themes.
func PackageFiles(folder string) ([]string, error) {
	names := slices.Concat(npmlock.Names, settingsOfNpm)
	for _, name := range npmlock.Names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock, err := npmlock.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: run npm install and commit it", name, err)
		}
		for _, linked := range lock.Folders() {
			if filepath.IsLocal(linked) {
				names = append(names, path.Join(linked, packageList))
			}
		}
		break
	}
	lists, err := filepath.Glob(filepath.Join(folder, "packages", "*", packageList))
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		names = append(names, path.Join("packages", filepath.Base(filepath.Dir(list)), packageList))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isThere(folder, name) })
	slices.Sort(names)
	return slices.Compact(names), nil
}

// PackageFolder is the folder whose packages the site is built with, as a path below top: the site's own, or the
// nearest above it with a lock file. It is empty where none is to be installed.
func PackageFolder(top, site string) (string, error) {
	for folder := site; ; folder = path.Dir(folder) {
		at := filepath.Join(top, folder)
		if wanted, err := WantsPackages(at); err != nil || wanted {
			return folder, err
		}
		if hasLock(at) || isThere(at, "node_modules") || folder == "." {
			return "", nil
		}
	}
}

// PackageOptions say whose packages to install.
type PackageOptions struct {
	Site  string // the folder of the lock file, or only its PackageFiles
	Out   string // an empty folder or none; node_modules comes into it
	Cache string // npm's, kept between builds

	RetryFor time.Duration // how long a download that fails is tried again

	Log io.Writer // what npm says while it runs
}

// Packages installs what the site's lock file pins, byte for byte what anyone else gets from it. Without a lock, nothing is
// installed: many a package.json only serves the work on a theme, and where Hugo does need a package, Build says so with
// the way out. A committed node_modules is left to speak for itself.
//
// Install scripts do not run: they would download what no lock pins, such as another Hugo, and none of the packages that
// Hugo starts needs its own.
func Packages(ctx context.Context, opts PackageOptions) error {
	if err := os.MkdirAll(opts.Out, 0o755); err != nil {
		return err
	}
	wanted, err := WantsPackages(opts.Site)
	if err != nil || !wanted {
		return err
	}
	copied, err := PackageFiles(opts.Site)
	if err != nil {
		return err
	}
	for _, name := range copied {
		if err := copytree.Over(filepath.Join(opts.Site, name), filepath.Join(opts.Out, name)); err != nil {
			return err
		}
	}
	home, err := os.MkdirTemp("", "castle-home-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	_, err = downloaded(ctx, command{
		timeout: npmTimeout, name: "npm", dir: opts.Out, log: opts.Log,
		args: []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--prefer-offline", "--no-update-notifier",
			"--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=4000", "--cache=" + opts.Cache},
		// The engine adds a certificate of the user's network to the system's list, which Node.js does not read by itself.
		env: []string{"HOME=" + home, "NODE_EXTRA_CA_CERTS=" + certificates},
	}, opts.RetryFor, "npm ci", lostPackage, explainNpm)
	if err != nil {
		return err
	}
	for _, name := range copied {
		if err := os.Remove(filepath.Join(opts.Out, name)); err != nil {
			return err
		}
	}
	return nil
}

const certificates = "/etc/ssl/certs/ca-certificates.crt"

// WantsPackages tells whether there is a list of packages and a lock for it, and no committed node_modules: whether Packages
// would install any.
func WantsPackages(site string) (bool, error) {
	if isThere(site, "node_modules") || !hasLock(site) {
		return false, nil
	}
	data, err := os.ReadFile(filepath.Join(site, packageList))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var list struct {
		Dependencies, DevDependencies, OptionalDependencies map[string]string
		Workspaces                                          json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return false, fmt.Errorf("the site's package.json: %w", err)
	}
	return len(list.Dependencies)+len(list.DevDependencies)+len(list.OptionalDependencies)+len(list.Workspaces) > 0, nil
}

func hasLock(site string) bool {
	return slices.ContainsFunc(npmlock.Names, func(name string) bool { return isThere(site, name) })
}

func isThere(site, name string) bool {
	_, err := os.Stat(filepath.Join(site, name))
	return err == nil
}
