package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/rendering"
)

// Format is the flag --format of a command that prints a result. A name that is none is refused while the command line
// is read: a report that cannot be written must not be found out after the image was pushed.
type Format struct{ name, file string }

// Add adds the flag to a command.
func (f *Format) Add(command *cobra.Command) {
	f.name = "text"
	command.Flags().Var(f, "format", "text, json or markdown")
}

// AddFile adds the flag --report-file, for a command that runs with secrets. Dagger masks each occurrence of a secret in what a
// command prints, however short the secret is: one of two letters takes a digest apart. Source: engine v0.19.10,
// engine/buildkit/secret_scrub.go.
func (f *Format) AddFile(command *cobra.Command) {
	command.Flags().StringVar(&f.file, "report-file", "", "a file to write the result to; what fails the command is printed instead")
}

func (f *Format) String() string { return f.name }

// Type is how the help calls the flag's value.
func (f *Format) Type() string { return "string" }

// IsText says that the result is for a person.
func (f *Format) IsText() bool { return strings.EqualFold(f.name, "text") }

// Set takes the flag's value.
func (f *Format) Set(text string) error {
	f.name = text
	return rendering.Check(text)
}

// Print writes a result to the command's output.
func (f *Format) Print(cmd *cobra.Command, result rendering.Result) error {
	text, err := rendering.As(f.name, result)
	if err != nil {
		return err
	}
	if f.file != "" {
		return os.WriteFile(f.file, []byte(redact.Text(text)), 0o600)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}

// PrintFindings writes a result too, and has the program fail where there is something to mend: the result says what.
func (f *Format) PrintFindings(cmd *cobra.Command, result rendering.Result, failed bool) error {
	if failed {
		f.file = "" // nobody can ask for a file of a command that failed
	}
	if err := f.Print(cmd, result); err != nil || !failed {
		return err
	}
	return Exit(1)
}
