package gitopscheck

import (
	"bytes"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/factory/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/factory/gitopscheck/manifests"
)

// secrets finds Secrets in clear, whether anything applies them or not: they are in Git. No value is quoted.
func (c *check) secrets() {
	for _, file := range c.repository.Files.Sorted() {
		for _, document := range file.Documents {
			switch {
			case manifests.IsEncrypted(document.Object):
			case document.Kind == "Secret" && document.APIVersion == "v1":
				c.plain(document)
			case fluxtree.IsKustomizationFile(file.Name):
				c.generated(document)
			}
		}
	}
}

func (c *check) plain(document *manifests.Document) {
	for _, field := range []string{"data", "stringData"} {
		values := manifests.Map(document.Object, field)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if text, is := values[name].(string); is && inClear(text) {
				c.at(document.File.Name, document.LineOf(field, name), rulePlainSecret, document.File.Name,
					"Secret %s holds %s.%s in clear: encrypt it with SOPS, and change it: it is in the history", document.Name, field, name)
			}
		}
	}
}

// references are the beginnings of texts that name a secret in a store, for a program that puts it in its place: 1Password's op inject,
// vals, bank-vaults, the Vault plugin of Argo CD.
var references = []string{"op://", "ref+", "vault:", "<path:"}

// inClear says that a text may be a secret: it is not empty, not encrypted, no reference, and no template or variable.
func inClear(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, "ENC[") || strings.Contains(text, "${") || strings.Contains(text, "{{") {
		return false
	}
	return !slices.ContainsFunc(references, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// generated looks at what a kustomization.yaml makes Secrets of.
func (c *check) generated(document *manifests.Document) {
	for i, generator := range manifests.List(document.Object, "secretGenerator") {
		name := manifests.Text(generator, "name")
		tell := func(what, field string) {
			c.at(document.File.Name, document.LineOf("secretGenerator", strconv.Itoa(i), field), rulePlainSecret, document.File.Name,
				"Secret %s is made of %s, which is in clear: encrypt it with SOPS, and change it: it is in the history", name, what)
		}
		for _, literal := range manifests.List(generator, "literals") {
			key, value, _ := strings.Cut(textOf(literal), "=")
			if inClear(value) {
				tell("the literal "+key, "literals")
			}
		}
		for _, field := range []string{"files", "envs"} {
			for _, entry := range manifests.List(generator, field) {
				file := textOf(entry)
				if _, source, named := strings.Cut(file, "="); named {
					file = source
				}
				if c.fileInClear(path.Join(path.Dir(document.File.Name), file)) {
					tell("the file "+file, field)
				}
			}
		}
	}
}

// fileInClear says that a file is there, and neither encrypted by SOPS or git-crypt nor full of variables.
func (c *check) fileInClear(name string) bool {
	if strings.HasPrefix(name, "../") {
		return false
	}
	content, err := os.ReadFile(filepath.Join(c.repository.Files.Root, filepath.FromSlash(name)))
	if err != nil || len(bytes.TrimSpace(content)) == 0 {
		return false
	}
	for _, mark := range []string{"ENC[", "\x00GITCRYPT", "${", "op://", "{{"} {
		if bytes.Contains(content, []byte(mark)) {
			return false
		}
	}
	return true
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// decryption finds encrypted objects whose Kustomization does not decrypt: kustomize-controller refuses all of it then (apply in
// internal/controller/kustomization_controller.go of v1.9.5).
func (c *check) decryption() {
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		if manifests.Map(k.Object.Object, "spec", "decryption") != nil {
			return
		}
		for _, object := range k.Objects {
			if object.GetKind() == "Secret" && manifests.IsEncrypted(object.Object) && object.GetAnnotations()[fluxtree.KustomizeGroup+"/decrypt"] != "disabled" {
				c.on(object, nil, ruleDecryption, k.ID().String(), "%s is encrypted by SOPS, and %s does not decrypt: add spec.decryption to it", object.ID(), k.ID())
			}
		}
	})
}
