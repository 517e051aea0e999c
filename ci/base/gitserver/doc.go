// Package gitserver serves the bare Git repositories of one folder over HTTP by "git http-backend", with a token instead of
// users, for demonstrations and tests on a network of one's own; it never creates or deletes a repository on request, and
// its token never reaches a child process, a file or the log.
package gitserver
