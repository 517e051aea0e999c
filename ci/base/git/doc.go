// Package git runs the git command line with argument lists, a deadline, a scrubbed environment and errors that say what
// kind of failure it was; it never builds shell strings, never prompts, never reads the user's or the system's git
// configuration, and never lets a credential into an argument, a URL, a file or an error.
//
// It needs git 2.38 or later: configuration is handed over in the environment (GIT_CONFIG_COUNT), and safe.directory is
// honoured there from that version on.
package git
