// Package siteimage assembles a website's container image from a base image with nginx and a folder of finished pages;
// it never runs a container, never talks to a registry and never lets a clock, an owner, a mode, a file time or the
// number of CPUs into the image.
//
// The layers stand in the order in which they change, and the later ones are cut so that an edit sends little:
//
//	base      the base image's layers, their compressed bytes untouched
//	server    nginx's configuration for the port
//	assets    pictures, styles, fonts, downloads: whatever is no page
//	pages     single pages, and their texts for a search
//	terms     lists of a taxonomy's terms, and of what has one of them
//	lists     home, sections and their pagination: what changes with every new article
//	feeds     feeds, search indexes, site maps: what changes with every edit
//
// All but the first two are spread over shards by a hash of the folder, or of the file where a folder has many pages. How many shards there are depends on how many
// bytes there are of the kind, in coarse steps, so that one more page moves no other.
package siteimage
