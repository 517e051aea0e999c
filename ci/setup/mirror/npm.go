package mirror

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/images"
)

// What the hugo stand-in has from npm, pinned by version and checksum: Dart Sass as the official image has it, and the
// same release line of Node.js. Debian's own Node.js is too old for the permission flags that Hugo starts it with, and
// Debian's npm is hundreds of packages.
var (
	//go:embed npm/package.json
	npmManifest []byte
	//go:embed npm/package-lock.json
	npmLock []byte
)

// dartSass is where the official image has it.
const dartSass = "/var/hugo/bin/dart-sass"

// npmPackages installs them in the folder, as its node_modules, by the npm client of this machine: Debian's, where there
// is none. Their install scripts do not run.
func npmPackages(ctx context.Context, folder string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		if err := debian.Install(ctx, "npm"); err != nil {
			return err
		}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(folder, "package.json"), npmManifest, 0o644),
		os.WriteFile(filepath.Join(folder, "package-lock.json"), npmLock, 0o644),
	)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-bin-links", "--no-audit", "--no-fund", "--no-progress")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("npm ci: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// npmArchitecture is what packages with programs call this machine's.
func npmArchitecture(arch string) string {
	if arch == "amd64" {
		return "x64"
	}
	return arch
}

func nodeContent(_ context.Context, b *builder, _ images.Image) (content, error) {
	return content{
		inputs:   digestOf(string(npmLock), b.arch),
		madeFrom: "Node.js, npm and Dart Sass from npm",
		write: func(ctx context.Context, layer layerWriter) error {
			folder, err := os.MkdirTemp(b.layers(), ".npm-*")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			if err := b.npm(ctx, folder); err != nil {
				return err
			}
			return writeNode(layer, filepath.Join(folder, "node_modules"), npmArchitecture(b.arch))
		},
	}, nil
}

// writeNode puts the programs where the official image has them.
func writeNode(layer layerWriter, modules, arch string) error {
	if err := layer.file("usr/bin/node", 0o755, filepath.Join(modules, "node-linux-"+arch, "bin/node")); err != nil {
		return err
	}
	if err := layer.tree("usr/lib/node_modules/npm", filepath.Join(modules, "npm"), npmFile); err != nil {
		return err
	}
	for _, name := range []string{"npm", "npx"} {
		if err := layer.link("usr/bin/"+name, "../lib/node_modules/npm/bin/"+name+"-cli.js"); err != nil {
			return err
		}
	}
	if err := layer.folder("var/hugo/bin", 0o755); err != nil {
		return err
	}
	return layer.tree(strings.TrimPrefix(dartSass, "/"), filepath.Join(modules, "sass-embedded-linux-"+arch, "dart-sass"), sassFile)
}

// npmFile leaves out npm's manual.
func npmFile(file string) (string, int64) {
	switch folder, _, _ := strings.Cut(file, "/"); folder {
	case "man", "docs":
		return "", 0
	case "bin":
		return file, 0o755
	default:
		return file, 0o644
	}
}

func sassFile(file string) (string, int64) {
	if base := path.Base(file); base == "sass" || base == "dart" {
		return file, 0o755
	}
	return file, 0o644
}
