// Package digest knows the one form of an OCI digest that castle takes.
package digest

import "regexp"

var form = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Valid says whether a text is sha256: and 64 lower-case hexadecimal digits.
func Valid(text string) bool { return form.MatchString(text) }
