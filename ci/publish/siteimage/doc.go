// Package siteimage assembles a website's container image from a base image with nginx and a folder of finished pages;
// it never runs a container, never talks to a registry and never lets a clock, an owner, a mode, a file time or the
// number of CPUs into the image.
//
// The layers stand in the order in which they change, and the later ones are cut so that an edit sends little:
//
//	base      the base image's layers, their compressed bytes untouched
//	server    nginx's configuration for the port
//	assets    pictures, styles, fonts, downloads: whatever is no page
//	pages     single pages, spread over shards by a hash of their path
//	indexes   what changes with every edit: home, lists, feeds, site map
//
// How many shards there are depends on the number of pages in steps of four, so that one more page moves no other.
package siteimage
