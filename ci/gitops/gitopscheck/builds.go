package gitopscheck

import (
	"bytes"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
)

// kustomizations calls a function for each Kustomization that is not suspended.
func (c *check) kustomizations(each func(*fluxtree.Cluster, *fluxtree.Kustomization)) {
	for _, cluster := range c.repository.Clusters {
		for _, kustomization := range cluster.Kustomizations {
			if !kustomization.Suspended() {
				each(cluster, kustomization)
			}
		}
	}
}

func (c *check) paths() {
	for _, unused := range c.repository.Unused {
		c.note("nothing applies the Kustomization %s in %s, and the folder that it names is not here: left out", unused.Name, unused.File.Name)
	}
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		at := []string{"spec", "path"}
		switch {
		case k.Folder == "":
			c.note("%s builds a folder of another repository, which is not here", k.ID())
		case k.Built || k.Err != nil:
		case k.Folder == ".." || strings.HasPrefix(k.Folder, "../"):
			c.on(k.Object, at, rulePath, k.Folder, "%s: spec.path leads out of the repository: correct it", k.ID())
		default:
			c.on(k.Object, at, rulePath, k.Folder, "%s: there is no folder %s in the repository: correct spec.path", k.ID(), k.Folder)
		}
	})
}

func (c *check) builds() {
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		c.remote(k.ID().String(), k.Remote)
		switch {
		case k.Err == nil:
		case len(k.Remote) > 0:
			c.note("%s cannot be built without that: not checked", k.ID())
		default:
			cause := innermost(k.Err)
			c.on(k.Object, []string{"spec", "path"}, ruleBuild, cause, "%s: kustomize cannot build %s: %s", k.ID(), k.Folder, cause)
		}
	})
}

func (c *check) overlays() {
	for _, overlay := range c.repository.Overlays {
		c.remote("the overlay "+overlay.Folder, overlay.Remote)
		switch {
		case overlay.Err == nil || len(overlay.Remote) > 0:
		case bytes.Contains(c.repository.Files.ByName[overlay.File].Text, []byte("{{")):
			c.note("the overlay %s is a template of some program: not built", overlay.Folder)
		case strings.Contains(overlay.Err.Error(), "must specify --enable-helm"):
			c.note("the overlay %s renders a Helm chart by kustomize, which needs its repository: not built", overlay.Folder)
		default:
			cause := innermost(overlay.Err)
			c.at(overlay.File, 1, ruleOverlay, cause, "kustomize cannot build %s: %s", overlay.Folder, cause)
		}
	}
}

// remote notes what was left out.
func (c *check) remote(who string, bases []string) {
	switch len(bases) {
	case 0:
	case 1:
		c.note("%s takes in what is at another host and was not fetched: %s", who, bases[0])
	default:
		c.note("%s takes in %d things that are at other hosts and were not fetched, the first being %s", who, len(bases), bases[0])
	}
}

func (c *check) variables() {
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		for _, name := range k.Empty {
			c.on(k.Object, []string{"spec", "postBuild"}, ruleVariable, name,
				"%s: ${%s} has no value and no default in %s, and becomes nothing: give it one, or write $${%s} for the text itself", k.ID(), name, k.Folder, name)
		}
	})
}

// around is what kustomize puts around an error on each level of folders.
var (
	around = regexp.MustCompile(`^(accumulating (resources|components): )?accumulation err='accumulating (resources|components) from '[^']*': (read [^']*: is a directory|[^']*)': `)
	nested = regexp.MustCompile(`^(recursed (accumulation|merging) (of|from) path '[^']*': |accumulating (resources|components): )`)
	opened = regexp.MustCompile(`from '([^']*)': open [^']*: no such file or directory': .*$`)
)

// innermost is kustomize's error without the path of folders that led to it.
func innermost(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for {
		if missing := opened.FindStringSubmatch(text); missing != nil && !strings.Contains(missing[1], "'") {
			if last := strings.LastIndex(text, "accumulating resources from '"+missing[1]); last >= 0 {
				return "there is no " + missing[1] + ", which the kustomization.yaml names"
			}
		}
		shorter := nested.ReplaceAllString(around.ReplaceAllString(text, ""), "")
		if shorter == text {
			return text
		}
		text = shorter
	}
}
