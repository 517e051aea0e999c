//go:build !linux

package nodump

// Process does nothing here: other systems have no /proc that another process of the same user could read an
// environment from.
func Process() error { return nil }
