package hugobuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tazlab.net/castle/ci/base/copytree"
)

// npmTimeout bounds the download of all packages.
const npmTimeout = 15 * time.Minute

// packageFiles are what decides the packages: the site's list, either kind of lock, npm's settings, and the lists of
// workspaces where `hugo mod npm pack` puts that of the themes. .dagger/blog.go gives the step just these.
var packageFiles = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", "packages/*/package.json"}

// PackageOptions say whose packages to install.
type PackageOptions struct {
	Site  string // the site's folder, or only its packageFiles
	Out   string // an empty folder or none; node_modules comes into it
	Cache string // npm's, kept between builds

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
	var copied []string
	for _, pattern := range packageFiles {
		found, err := filepath.Glob(filepath.Join(opts.Site, pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			name, err := filepath.Rel(opts.Site, file)
			if err != nil {
				return err
			}
			if err := copytree.Over(file, filepath.Join(opts.Out, name)); err != nil {
				return err
			}
			copied = append(copied, name)
		}
	}
	home, err := os.MkdirTemp("", "castle-home-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	said, err := run(ctx, command{
		timeout: npmTimeout, name: "npm", dir: opts.Out, log: opts.Log,
		args: []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--prefer-offline", "--no-update-notifier",
			"--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=4000", "--cache=" + opts.Cache},
		// The engine adds a certificate of the user's network to the system's list, which Node.js does not read by itself.
		env: []string{"HOME=" + home, "NODE_EXTRA_CA_CERTS=" + certificates},
	})
	if failed := (*failure)(nil); errors.As(err, &failed) {
		return explainNpm(said)
	}
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
	data, err := os.ReadFile(filepath.Join(site, "package.json"))
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
	return isThere(site, "package-lock.json") || isThere(site, "npm-shrinkwrap.json")
}

func isThere(site, name string) bool {
	_, err := os.Stat(filepath.Join(site, name))
	return err == nil
}
