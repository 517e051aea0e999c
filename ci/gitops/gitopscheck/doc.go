// Package gitopscheck looks at a GitOps repository that Flux follows, as it stands in its files, and lists all that would keep a cluster from
// getting it: folders that kustomize cannot build, objects that the API server would refuse, Kustomizations that wait for
// each other, routes that end nowhere, secrets in clear.
//
// Each Kustomization is built as kustomize-controller builds it (package fluxtree), and the rules look at the objects that come out.
// What only a cluster knows, the values of its Secrets or what a chart renders, is unknown here; a rule is silent where
// its answer would depend on that. No network is used: bases at other hosts are left out and told.
package gitopscheck
