package infisical

import (
	"regexp"
	"strings"
)

// A reference is ${NAME}, a secret of the same folder, or ${environment.folder.folder.NAME}.
var reference = regexp.MustCompile(`\$\{([A-Za-z0-9_.-]+)\}`)

const maxReferenceDepth = 10

// expand replaces references in the value of a secret, also within what they stand for; one to nothing becomes empty, and one to what the
// identity may not read is refused. Source: Infisical 01c2f93, backend/src/services/secret-v2-bridge/secret-v2-bridge-fns.ts
// (expandSecretReferencesFactory).
func (p *project) expand(who *identity, value string, at place, name string) (string, error) {
	return p.expandTo(who, value, at, name, maxReferenceDepth)
}

func (p *project) expandTo(who *identity, value string, at place, of string, depth int) (string, error) {
	if depth == 0 {
		return value, nil
	}
	var refused error
	expanded := reference.ReplaceAllStringFunc(value, func(found string) string {
		parts := strings.Split(found[2:len(found)-1], ".")
		name, there := parts[len(parts)-1], at
		if len(parts) > 1 {
			there.Environment, there.SecretPath = parts[0], strings.Join(parts[1:len(parts)-1], "/")
		}
		if !who.sees(actionValue, there.thing(name)) {
			refused = forbiddenRequest("You do not have permission to read secret '%s' in environment '%s' at path '%s', which is referenced by secret '%s' in environment '%s' at path '%s'.",
				name, there.Environment, cleanPath(there.SecretPath), of, at.Environment, cleanPath(at.SecretPath))
			return ""
		}
		f := p.folder(there.Environment, there.SecretPath)
		if f == nil || f.Secrets[name] == nil {
			return ""
		}
		inner, err := p.expandTo(who, f.Secrets[name].Value, there, name, depth-1)
		if err != nil {
			refused = err
		}
		return inner
	})
	return expanded, refused
}
