// Package webref finds what stylesheets and attributes of a page refer to. It reads text and resolves nothing: what a
// reference means to a site is up to those who ask.
package webref
