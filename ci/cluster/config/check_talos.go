package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/base/strictyaml"
)

// version checks the form of a version and gives its "major.minor", or "".
func (k *checker) version(path, text string) string {
	if !k.Has(path) {
		return ""
	}
	if match := versionForm.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	switch {
	case versionForm.MatchString("v" + text):
		k.Mistake(path, "%s has no v; did you mean v%s?", text, text)
	case versionForm.MatchString("v" + strings.TrimPrefix(text, "v") + ".0"):
		such := "v" + strings.TrimPrefix(text, "v") + ".0"
		if path == "talos.version" && semver.MajorMinor(such) == semver.MajorMinor(TalosVersion) {
			such = TalosVersion
		}
		k.Mistake(path, "%s has no patch number; write the exact version, such as %s", text, such)
	default:
		k.Mistake(path, "%q is not an exact version; write it as %s", text, TalosVersion)
	}
	return ""
}

func (k *checker) talos() {
	t := k.c.Talos
	minor := minorOf(k.version("talos.version", t.Version))
	known := minors()
	if minor >= 0 && !slices.Contains(known, minor) || minor < 0 && versionForm.MatchString(t.Version) {
		k.Mistake("talos.version", "%s is not known; known are v1.%d to v1.%d", t.Version, known[0], known[len(known)-1])
		minor = -1
	}
	k.schematic()
	k.word("talos.diskEncryption.ephemeral", t.DiskEncryption.Ephemeral)
	k.extensions(minor)
	k.kernelModules(minor)
	k.registryMirrors()
}

func (k *checker) schematic() {
	id := k.c.Talos.Schematic
	if !k.Has("talos.schematic") || facts.Of("talos.schematic").Form.MatchString(id) {
		return
	}
	k.Mistake("talos.schematic", "%q is not a schematic's id, which is 64 hexadecimal digits; for these extensions alone it is %s",
		id, Schematic(k.c.Talos.Extensions))
}

func (k *checker) extensions(minor int) {
	if !k.Has("talos.extensions") {
		return
	}
	list := k.c.Talos.Extensions
	for i, name := range list {
		path := fmt.Sprintf("talos.extensions[%d]", i)
		switch {
		case slices.Contains(list[:i], name):
			k.Mistake(path, "%s stands in the list already; remove it", name)
		case minor >= 0 && extensions().has(name, minor):
		case minor >= 0 && len(extensions()[name]) > 0:
			k.Mistake(path, "%s does not exist for Talos %s, only for %s; remove it or change the version", name, k.c.Talos.Version, inMinors(extensions()[name]))
		case len(extensions()[name]) == 0:
			k.Mistake(path, "%q is unknown; %s", name, nearest(name, extensions()))
		}
	}
	if k.Has("storage") && !k.c.Storage.Has() {
		return
	}
	for _, name := range required {
		unknown := slices.ContainsFunc(list, func(have string) bool {
			return len(extensions()[have]) == 0 && strings.HasSuffix(nearest(have, extensions()), " "+name+"?")
		})
		if !slices.Contains(list, name) && !unknown {
			k.Mistake("talos.extensions", "%s is missing; Longhorn cannot attach volumes without it", name)
		}
	}
}

func (k *checker) kernelModules(minor int) {
	list := k.c.Talos.KernelModules
	if !k.Has("talos.kernelModules") {
		return
	}
	for i, written := range list {
		path := fmt.Sprintf("talos.kernelModules[%d]", i)
		name := strings.ReplaceAll(written, "-", "_") // the kernel takes both for the same
		from := moduleExtensions[name]
		switch {
		case slices.Contains(list[:i], written):
			k.Mistake(path, "%s stands in the list already; remove it", written)
		case minor < 0 && (len(modules()[name]) > 0 || from != nil), modules().has(name, minor):
		case slices.ContainsFunc(from, func(e string) bool { return slices.Contains(k.c.Talos.Extensions, e) }):
		case from != nil:
			k.Mistake(path, "%s is not shipped by Talos %s itself; add the extension %s", written, k.c.Talos.Version, strings.Join(from, " or "))
		case len(modules()[name]) > 0:
			k.Mistake(path, "%s is not shipped by Talos %s, only by %s; remove it or change the version", written, k.c.Talos.Version, inMinors(modules()[name]))
		default:
			k.Mistake(path, "%q is not a module that Talos ships; %s", written, nearest(name, modules()))
		}
	}
}

// nearest proposes the most similar name of the catalogue, which is too long to be listed.
func nearest(name string, list catalogue) string {
	var all []string
	for known := range list {
		all = append(all, known)
		if strings.TrimPrefix(known, "siderolabs/") == name {
			return "did you mean " + known + "?"
		}
	}
	slices.Sort(all)
	if fix := strictyaml.DidYouMean(name, all, ""); strings.HasPrefix(fix, "did you mean") {
		return fix
	}
	return "remove it"
}

func inMinors(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("v1.%d", list[0])
	}
	return fmt.Sprintf("v1.%d to v1.%d", list[0], list[len(list)-1])
}

// kubernetes asks Talos's own table which versions run together.
func (k *checker) kubernetes() {
	minor := k.version("kubernetes.version", k.c.Kubernetes.Version)
	if minor == "" {
		return
	}
	version, err := compatibility.ParseKubernetesVersion(k.c.Kubernetes.Version)
	if err != nil {
		k.Mistake("kubernetes.version", "%s cannot be read: %v", k.c.Kubernetes.Version, err)
		return
	}
	supported := func(talos string) bool {
		target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: talos})
		return err == nil && version.SupportedWith(target) == nil
	}
	var with []string
	for _, m := range minors() {
		if supported(fmt.Sprintf("v1.%d.0", m)) {
			with = append(with, fmt.Sprintf("v1.%d", m))
		}
	}
	talos := k.c.Talos.Version
	switch {
	case len(with) == 0:
		k.Mistake("kubernetes.version", "%s is not known to any version of Talos here; with Talos %s write %s", k.c.Kubernetes.Version, TalosVersion, kubernetesOf(TalosVersion))
	case k.Has("talos.version") && slices.Contains(minors(), minorOf(strings.TrimPrefix(talos, "v"))) && !supported(talos):
		k.Mistake("kubernetes.version", "%s does not run on Talos %s, which takes %s; change it, or take Talos %s",
			k.c.Kubernetes.Version, talos, kubernetesOf(talos), strings.Join(with, " or "))
	}
}

// kubernetesOf lists the minor versions of Kubernetes that a version of Talos supports: "v1.31 to v1.36".
func kubernetesOf(talos string) string {
	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: talos})
	if err != nil {
		return "another one"
	}
	first, last := 0, 0
	for minor := 1; minor < 100; minor++ {
		version, err := compatibility.ParseKubernetesVersion(fmt.Sprintf("v1.%d.0", minor))
		if err == nil && version.SupportedWith(target) == nil {
			if first == 0 {
				first = minor
			}
			last = minor
		}
	}
	return fmt.Sprintf("v1.%d to v1.%d", first, last)
}
