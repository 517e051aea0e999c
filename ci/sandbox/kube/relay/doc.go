// Package relay accepts TCP connections on an address and copies them to one of several targets, chosen in turn. It never
// looks at what it carries.
package relay
