package cli

import (
	"os"
	"strings"
)

// Secret is the secret in a variable of the environment. Files of secrets end in a line break, and "file:PATH" hands that on, too.
func Secret(variable string) string { return strings.TrimRight(os.Getenv(variable), "\r\n") }
