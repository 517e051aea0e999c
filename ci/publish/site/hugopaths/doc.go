// Package hugopaths finds the files and folders outside a site's own folder that the site's configuration names: in a
// monorepo the docs folder that is mounted as content, for a theme's example site the theme itself.
//
// It reads the configuration of a production build and follows what Hugo follows: the folders of each kind
// (contentDir, staticDir and so on, also those of a language), module.mounts, the themes below themesDir,
// module.replacements, and the local folders of go.mod and of the workspace file. The configurations of modules and
// themes that are in the repository are read likewise. Hugo passes over a folder that does not exist without a word,
// so that a name that leads to nothing is a problem here instead. Source: modules/collect.go, modules/config.go and
// config/allconfig/load.go of Hugo v0.165.0.
package hugopaths
