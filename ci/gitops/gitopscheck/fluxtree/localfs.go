package fluxtree

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fluxcd/pkg/kustomize"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// localFS hands kustomize the repository without what is at other hosts, and with one file in place of what is on the disk, or
// beside it. It remembers what was read.
type localFS struct {
	filesys.FileSystem
	root     string
	made     string // the file's name
	manifest []byte // its content
	read     map[string]bool
	remote   []string
	openAPI  bool // a kustomization.yaml brings schemas of its own
}

// run has kustomize build a folder, with the options that kustomize.Build of fluxcd/pkg/kustomize gives it. That function
// reads Kubernetes' schemas anew for each folder, which takes ten times as long as the rest and is needed only where a
// folder has changed them.
//
// It tells of deprecated fields on the process's standard error, in a comment's form, without the file's name: that helps nobody.
func (l *localFS) run(folder string) (resources resmap.ResMap, err error) {
	running.Lock()
	defer running.Unlock()
	shown := os.Stderr
	defer func() {
		os.Stderr = shown
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("kustomize panicked: %v", panicked) // as it does on some objects that are none
		}
		if l.openAPI {
			openapi.ResetOpenAPI()
		}
	}()
	if quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		defer quiet.Close()
		os.Stderr = quiet
	}
	options := &krusty.Options{LoadRestrictions: kustypes.LoadRestrictionsNone, PluginConfig: kustypes.DisabledPluginConfig()}
	return krusty.MakeKustomizer(options).Run(l, folder)
}

// running is held while kustomize runs: its schemas are the process's.
var running sync.Mutex

// ReadFile leaves bases at other hosts out of a kustomization.yaml: kustomize would clone or fetch them.
func (l *localFS) ReadFile(name string) ([]byte, error) {
	data := l.manifest
	if name != l.made {
		var err error
		if data, err = l.FileSystem.ReadFile(name); err != nil {
			return data, err
		}
	}
	if below, err := filepath.Rel(l.root, name); err == nil {
		l.read[filepath.ToSlash(below)] = true
	}
	if !IsKustomizationFile(name) {
		return data, nil
	}
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return data, nil // kustomize says what is wrong with it
	}
	if fields["openapi"] != nil {
		l.openAPI = true
	}
	before := len(l.remote)
	for _, list := range []string{"resources", "bases", "components", "crds"} {
		l.keepLocal(fields, list, isRemote)
	}
	for _, list := range []string{"configMapGenerator", "secretGenerator"} {
		entries, _ := fields[list].([]any)
		for _, entry := range entries {
			if generator, is := entry.(map[string]any); is {
				l.keepLocal(generator, "files", isRemoteFile)
				l.keepLocal(generator, "envs", isRemoteFile)
			}
		}
	}
	if len(l.remote) == before {
		return data, nil
	}
	return yaml.Marshal(fields)
}

// keepLocal takes the remote entries out of a list.
func (l *localFS) keepLocal(fields map[string]any, list string, remote func(string) bool) {
	entries, is := fields[list].([]any)
	if !is {
		return
	}
	fields[list] = slices.DeleteFunc(slices.Clone(entries), func(entry any) bool {
		text, _ := entry.(string)
		if !remote(text) {
			return false
		}
		l.remote = append(l.remote, text)
		return true
	})
}

// isRemoteFile is for files, which may have a name of their own in front: dashboard.json=https://…
func isRemoteFile(entry string) bool {
	return strings.HasPrefix(entry, "http://") || strings.HasPrefix(entry, "https://") || strings.Contains(entry, "=http://") || strings.Contains(entry, "=https://")
}

// isRemote says that an entry is no path: kustomize takes it for the address of a repository or a file.
func isRemote(entry string) bool {
	return !kustomize.IsLocalRelativePath(entry) && !filepath.IsAbs(entry) || strings.Contains(entry, "?ref=") || strings.Contains(entry, "//")
}

// IsKustomizationFile says that kustomize reads a file of that name for its folder.
func IsKustomizationFile(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(filepath.ToSlash(name)))
}
