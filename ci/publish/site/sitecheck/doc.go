// Package sitecheck reads a built site folder and lists everything in it that would disappoint a visitor: broken links and
// anchors, missing translations, invalid HTML, requests to other hosts, broken feeds; it never changes a file, runs a script
// or asks the network.
//
// The folder is indexed first, so that a link can be resolved the moment it is read. Then every file is read once, in
// parallel, by a single pass over its tokens: a stack of open elements that knows which tags HTML lets an author leave out
// (minifiers do) finds the mistakes of structure, and every reference is resolved against the index. What needs two pages,
// anchors and translations, is judged last, from the few facts each page left behind.
//
// What a theme's template does wrong it does on every page, so the report shows findings by rule and cause. The rules of HTML
// find nothing that html-validate, a checker that many use, does not find too; a test compares the two.
package sitecheck
