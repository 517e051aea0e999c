package gitopscheck

import (
	"bytes"
	"encoding/base64"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
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
			text, _ := values[name].(string)
			if decoded, err := base64.StdEncoding.DecodeString(text); field == "data" && err == nil {
				text = string(decoded)
			}
			if inClear(text) && !isPublic(name, text) {
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

// secretWords are parts of keys whose values are secret, whatever they look like.
var secretWords = []string{"pass", "pwd", "secret", "token", "credential", "auth", "private", "apikey", "api_key", "api-key", "signature", "salt", "pin", "cert"}

// hostWords and portWords are parts of keys of addresses.
var (
	hostWords = []string{"host", "server", "endpoint", "address", "addr", "domain", "uri", "url"}
	portWords = []string{"port"}

	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?$`)
)

// isPublic reports whether a value of a Secret has nothing to hide: a host name, an address, a port, or a URL without a
// user's name or password. Charts want such values in the Secret that holds the password.
func isPublic(key, text string) bool {
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(key), word) })
	}
	if has(secretWords) {
		return false
	}
	text = strings.TrimSpace(text)
	if strings.Contains(text, "://") {
		return isPublicURL(text)
	}
	host := text
	if name, port, err := net.SplitHostPort(text); err == nil && isPort(port) {
		host = name
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return has(portWords) && isPort(text) || has(hostWords) && hostName.MatchString(host)
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}

// isPublicURL reports whether a URL has neither user information nor a query that could hold a secret. The path of a
// URL on the web may be one, as those of webhooks are, so that only addresses of hosts and folders of one word count.
func isPublicURL(text string) bool {
	address, err := url.Parse(text)
	if err != nil || address.User != nil || address.Host == "" || address.Fragment != "" {
		return false
	}
	for name, values := range address.Query() {
		if slices.ContainsFunc(secretWords, func(word string) bool {
			return word != "cert" && strings.Contains(strings.ToLower(name), word)
		}) || slices.ContainsFunc(values, isRandom) {
			return false
		}
	}
	return !slices.ContainsFunc(strings.Split(address.Path, "/"), isRandom)
}

// isRandom reports whether a part of a URL looks like a key: long, with digits and letters, as those of webhooks are.
func isRandom(part string) bool {
	return len(part) >= 16 && strings.ContainsAny(part, "0123456789") && !strings.Contains(part, ".") ||
		len(part) >= 32 && !strings.Contains(part, "/")
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
			if inClear(value) && !isPublic(key, value) {
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
