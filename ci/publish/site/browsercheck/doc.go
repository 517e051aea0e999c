// Package browsercheck opens a served site in headless Chromium and lists what its headers break: violations of the
// Content-Security-Policy, console errors that are not there without the headers, and files of the site's own that do not
// come.
//
// The pages are those that pagechoice takes. Each is opened at every width, at the address that the site is built for: the
// browser resolves that host to a proxy in this process, which asks the server. So absolute links lead to the site itself,
// as they will, and a site of HTTPS is a secure context. A page where something was found is opened once more behind a proxy
// that takes the headers off: what is the same without them is not their fault.
package browsercheck
