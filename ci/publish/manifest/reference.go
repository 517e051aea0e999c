package manifest

import (
	"fmt"
	"strings"
)

// Reference is an image reference as it is written in the manifest, for instance
// {"tazzo/tazlab.net", "blog-1a2b3c4", "sha256:…"}. Tag and Digest are empty where they are not written.
type Reference struct {
	Repository, Tag, Digest string
}

// String joins the parts the way a container runtime reads them: repository[:tag][@digest].
func (r Reference) String() string {
	return r.Repository + r.suffix()
}

// suffix is what follows the repository.
func (r Reference) suffix() string {
	var s string
	if r.Tag != "" {
		s = ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// ParseReference splits repository[:tag][@digest] without judging the parts. A colon before the last slash belongs to
// the registry's port.
func ParseReference(s string) Reference {
	var r Reference
	s, r.Digest, _ = strings.Cut(s, "@")
	slash := strings.LastIndexByte(s, '/') + 1
	name, tag, _ := strings.Cut(s[slash:], ":")
	r.Repository, r.Tag = s[:slash]+name, tag
	return r
}

// canonical reduces a repository to the form in which two spellings of one Docker Hub repository are equal:
// docker.io/library/nginx, library/nginx and nginx are one.
func canonical(repository string) string {
	for _, host := range []string{"docker.io/", "index.docker.io/"} {
		if rest, ok := strings.CutPrefix(repository, host); ok {
			repository = rest
			break
		}
	}
	if rest, ok := strings.CutPrefix(repository, "library/"); ok && !strings.Contains(rest, "/") {
		return rest
	}
	return repository
}

// checkTag applies the tag grammar of the OCI distribution specification, [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}, and refuses
// latest, which cannot be rolled back.
func checkTag(tag string) error {
	switch {
	case tag == "latest":
		return &ArgumentError{What: "tag", Value: tag, Problem: "cannot be rolled back; use a tag that names one build"}
	case !isTag(tag):
		return &ArgumentError{What: "tag", Value: tag,
			Problem: "must be 1 to 128 letters, digits, '_', '.' or '-', and not begin with '.' or '-'"}
	}
	return nil
}

func isTag(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isAlphanumeric(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// digestLength is the number of hexadecimal digits of each registered algorithm (OCI image specification, descriptor).
var digestLength = map[string]int{"sha256": 64, "sha512": 128}

func checkDigest(digest string) error {
	algorithm, hex, _ := strings.Cut(digest, ":")
	n, ok := digestLength[algorithm]
	if !ok || len(hex) != n || strings.Trim(hex, "0123456789abcdef") != "" {
		return &ArgumentError{What: "digest", Value: digest,
			Problem: "must be sha256: with 64 or sha512: with 128 lower-case hexadecimal digits"}
	}
	return nil
}

// isLiteral tells a written tag or digest from one that is filled in later (Flux's ${VAR}, the templates of Go and of
// flux-operator).
func (r Reference) isLiteral() bool {
	return (r.Tag == "" || isTag(r.Tag)) && !strings.ContainsAny(r.Digest, "${}<>")
}

// whyNotLiteral is what stands in the way of changing a reference that is not literal, and the fix.
func (r Reference) whyNotLiteral() string {
	if strings.ContainsAny(r.Tag+r.Digest, "${}<>") {
		return "the tag is filled in by a template or a variable; change it where that gets its value"
	}
	return fmt.Sprintf("%q is not a tag that an image can have; if the text is spread over several lines, "+
		"write the reference on one line", strings.TrimPrefix(r.suffix(), ":"))
}
