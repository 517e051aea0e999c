// Package sitesettle finds what in a Hugo site makes two builds of it differ, and settles it in a copy of the site, which alone
// is built.
//
// Terms. Two spellings of a term, AI and ai or "context management" and context-management, are one term page when their paths
// are equal in lower case and with hyphens for spaces. Hugo makes that page from the first spelling that it meets in a map of
// all spellings, so the title is another one in each build, and with disablePathToLower the address too. (What a template gets
// as .Data.Term is not at stake: it is always the spelling of the page that comes last.) A term that has a page of its own in
// the content is not at stake either. Two terms may also be one address, as "What!" and what are, since an address has no
// punctuation: then both pages are written to one file, and the last one stays. Source: hugolib/content_map_page_assembler.go
// and common/paths of Hugo v0.165.0.
//
// A term is settled by a page of its own, _index.md, with the title that Hugo would have made of the spelling that sorts first,
// byte by byte, so that capitals come first. Nothing else changes on that page but .File, which is nil on a page that Hugo makes
// itself, so that a theme may offer to edit the file. The alternatives change more:
//
//   - A content adapter that adds the page has a .File too, and the page loses what a cascade sets beside its params. It serves
//     for terms like .NET alone: Hugo does not look into a folder whose name begins with a dot.
//   - A cascade in the configuration leaves .File alone, but would replace the cascade that the site's configuration has, and
//     does not reach a page's address.
//   - To write the pages' front matter alike changes what pages show as their tags and which pages a template finds by one.
//
// What the reader does not see: terms that content adapters and cascades give to pages, and content of Hugo modules
// that are not vendored. A term that is ambiguous by those alone stays as it is.
//
// Terms are settled from Hugo v0.126.0 on. An older one is left to choose, and the warnings say so.
//
// Languages. The translations of a page are listed by the languages' weights. Where languages have the same weight, or none,
// the translations of a page that Hugo makes itself come in the order of a map, so that links to them change places. Such
// languages get weights, in the order that Hugo has them in, by one more file of the configuration.
package sitesettle
