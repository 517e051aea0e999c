//go:build !unix

package filetree

import "time"

// setLinkTime does nothing where a link has no times of its own.
func setLinkTime(string, time.Time) error { return nil }
