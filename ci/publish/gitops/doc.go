// Package gitops points one image reference of a GitOps repository at another image by a pushed commit, and reads from
// the same repository what was published when; it forces a push only to the branch of a pull request that holds nobody
// else's commits, never changes a byte beside the reference, never looks into a registry, and never lets a credential out
// of git's environment.
//
// An update works on a bare, partial clone in a temporary folder: the tip of the branch with its trees, and the one
// manifest. The commit is made of objects, without a working tree, so that neither the size of the repository nor line
// end conversion or filters play a part.
//
// When the branch moves between fetch and push, the edit is made again on the manifest of the new tip. For a change
// that consists of "this reference now says that" this is what a rebase would do, without its false conflicts: a patch
// fails when a neighbouring line has changed or the same line went to the image of another publisher, while the edit
// still means the same. So concurrent publishers end up as a chain of commits, one each, in the order in which they
// were pushed, and the last one is what runs.
//
// What ends in ErrConflict instead: the manifest, or the reference in it, was removed or became ambiguous meanwhile, or
// the reference was set meanwhile by something that is no publish (a person, a rollback, another tool). That is
// somebody's decision about what is to run, made after this update began; only a person can tell which of the two is
// meant. To run the update again, now that the decision is known, is the way to insist.
//
// Every other failure, a protected branch or a refused credential, would be the same at the next try and ends at once.
package gitops
