package infisical

import (
	"regexp"
	"strings"
)

// A reference is ${NAME}, a secret of the same folder, or ${environment.folder.folder.NAME}.
var reference = regexp.MustCompile(`\$\{([A-Za-z0-9_.-]+)\}`)

const maxReferenceDepth = 10

// expand replaces references, also within what they stand for; one to nothing becomes empty.
func (p *project) expand(value, environment, folderPath string) string {
	return p.expandTo(value, environment, folderPath, maxReferenceDepth)
}

func (p *project) expandTo(value, environment, folderPath string, depth int) string {
	if depth == 0 {
		return value
	}
	return reference.ReplaceAllStringFunc(value, func(found string) string {
		parts := strings.Split(found[2:len(found)-1], ".")
		name := parts[len(parts)-1]
		environment, folderPath := environment, folderPath
		if len(parts) > 1 {
			environment, folderPath = parts[0], strings.Join(parts[1:len(parts)-1], "/")
		}
		f := p.folder(environment, folderPath)
		if f == nil || f.Secrets[name] == nil {
			return ""
		}
		return p.expandTo(f.Secrets[name].Value, environment, folderPath, depth-1)
	})
}
