// Package settings is castle.yaml: what a user's repository says once of its sites, and of the GitOps repository that
// delivers them. Flags override it, a cluster's description stands in between, and what nobody names is an error that says
// where it could be named.
package settings

//go:generate go test -run TestTheSchemaIsTheOneThatTypesAndFactsMake -update .
