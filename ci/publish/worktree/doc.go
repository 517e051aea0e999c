// Package worktree says whether a Git working tree may be published, which commit that would be, and exports the content of
// that commit; it never changes the tree or its repository, and never exports a byte that is not committed.
//
// The tree is usually a copy of a person's own, in a container: files belong to another user, and times, modes, global ignore
// files, line-ending settings and content filters of the original machine are not there. So whether a file is changed is
// decided by its content alone. Modes do not count, because an export takes them from the commit, and neither does a line
// feed that a checkout turned into CRLF.
package worktree
