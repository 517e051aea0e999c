//go:build !linux

package daggerengine

import "context"

// Run and Enter are Linux's alone; the rest of castle is not.

// Run fails.
func (e Engine) Run(context.Context, []string, *Mirror) error { return supported() }

// Enter fails.
func (e Engine) Enter(bool) error { return supported() }
