// Package siteheaders reads a built site folder and says which security headers fit it: strict enough to be worth
// sending, and never so strict that they break what the site uses. It runs no script and asks no network.
//
// Every file is read once, in parallel, and leaves behind what it needs: a directive, a source that the directive must
// allow, and why. A page needs the hosts that its elements name, the hashes of its inline scripts and styles, and what
// attributes with code or style in them need. A stylesheet needs what it loads. A script needs what the strings in it
// give away of what it does when it runs: addresses, style elements, evaluated text, workers, popups, sensors. A
// drawing counts only where it is opened as a document. A script of another host may load more than any page says; a
// table of well-known services has that, and for other hosts it is left open and told. A cache keeps what files left
// behind, so that the next build reads only those that changed.
//
// The needs are then put on top of the strict policy, directive by directive, so that a site that keeps to itself gets
// the strict headers to the letter. Where the policy grows longer than a proxy's buffer takes, lists give way to a word
// that covers them. What makes the policy weak is listed, a sentence each. The same files give the same headers.
//
// It is large for one package. A quarter of it is tables, of services, attributes and directives, and what reads a page
// and what writes the policy share the names of all directives and sources, which nobody else needs.
package siteheaders
