// Package webref reads the markup of pages and finds what their attributes and stylesheets refer to. It reads text and resolves nothing: what a
// reference means to a site is up to those who ask.
package webref
