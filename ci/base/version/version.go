// Package version says which version of castle this is.
package version

// Castle is the newest released version, with "-dev" behind it for what comes after that release. What a published image
// was made from names it, so a release must raise it: two builds with the same version count as the same program.
const Castle = "0.1.0-dev"
