package gitopscheck

import (
	"slices"

	"tazlab.net/castle/ci/base/findings"
)

// The rules a finding can name.
const (
	ruleAPIVersion     = "api-version"
	ruleBuild          = "build"
	ruleChartRange     = "chart-range"
	ruleChartVersion   = "chart-version"
	ruleCRDBesideCR    = "crd-beside-cr"
	ruleCRDWithCR      = "crd-with-cr"
	ruleDecryption     = "decryption"
	ruleDependsLoop    = "depends-loop"
	ruleDependsMissing = "depends-missing"
	ruleDryRun         = "dry-run"
	ruleHeavyGate      = "heavy-gate"
	ruleLockdown       = "lockdown"
	ruleImageTag       = "image-tag"
	ruleNamespace      = "namespace"
	ruleOverlay        = "overlay"
	ruleOwners         = "owners"
	rulePath           = "path"
	rulePlainSecret    = "plain-secret"
	ruleSchema         = "schema"
	ruleSchemaRelease  = "schema-release"
	ruleSourceMissing  = "source-missing"
	ruleVariable       = "variable"
	ruleWrongPort      = "wrong-port"
)

// Rule is a row of the table of rules.
type Rule struct {
	Name     string
	Severity findings.Severity
	Means    string
	Fix      string

	find func(*check) // nil: found together with the row before
}

// rules are all of them. An error keeps a cluster from getting what the repository says, or gives a secret away; a warning works, and
// will surprise somebody.
var rules = []Rule{
	{rulePath, findings.Error, "a Kustomization's path is not in the repository", "correct spec.path", (*check).paths},
	{ruleBuild, findings.Error, "kustomize cannot build what a Kustomization applies, so that nothing of it changes any more", "mend what the message names; `flux build kustomization` repeats it", (*check).builds},
	{ruleOverlay, findings.Warning, "kustomize cannot build a folder that no Kustomization applies", "mend or remove it", (*check).overlays},
	{ruleVariable, findings.Warning, "a variable has neither value nor default: Flux puts nothing in its place", "give it a value in postBuild or a default, `${NAME:=default}`, or write `$${NAME}` for the text itself", (*check).variables},

	{ruleSchema, findings.Error, "an object does not fit the schema of its kind, and the API server refuses it", "correct the field", (*check).schema},
	{ruleSchemaRelease, findings.Warning, "an object does not fit the definition that castle carries of a project's release; the cluster may have another", "correct the field, or give the cluster's own definitions with --crds", nil},
	{ruleAPIVersion, findings.Warning, "the API has no such version of the kind, or no more", "write the current version", nil},
	{ruleCRDWithCR, findings.Error, "a custom resource is in the Kustomization whose chart brings its definition: the dry-run of all fails, so that the chart is never installed",
		"put the custom resources into a Kustomization of their own that depends on the chart's", (*check).definitionsOfCharts},
	{ruleCRDBesideCR, findings.Warning, "a custom resource is in the Kustomization of its definition: kustomize-controller applies definitions first, and everything else (kubectl, a preview) fails",
		"put the definitions into a Kustomization of their own that the other depends on", (*check).definitions},

	{ruleDependsLoop, findings.Error, "what depends on each other is never applied", "take one dependsOn of the circle away", (*check).dependencies},
	{ruleDependsMissing, findings.Error, "what depends on something that does not exist is never applied", "correct name or namespace, or take the dependsOn away", nil},
	{ruleSourceMissing, findings.Error, "a source or chart that something refers to is made nowhere", "correct the reference, or add the source", (*check).sources},
	{ruleChartVersion, findings.Error, "a chart without a version is the newest one of that day", "write the version", (*check).charts},
	{ruleChartRange, findings.Warning, "a range of versions is another chart on another day", "write one version, and let Renovate or Dependabot raise it", nil},
	{ruleOwners, findings.Error, "two Kustomizations apply the same object: each takes it from the other, and the one that drops it deletes it", "leave it in one of them", (*check).owners},

	{ruleImageTag, findings.Error, "an image without a tag, or with `latest`, is another one on another day and cannot be rolled back", "write a tag or a digest", (*check).images},
	{rulePlainSecret, findings.Error, "a Secret stands in clear in Git", "encrypt it with SOPS, or have an ExternalSecret make it; and change the secret, it is in the history", (*check).secrets},
	{ruleDecryption, findings.Error, "an object is encrypted by SOPS, and its Kustomization does not decrypt", "add spec.decryption to the Kustomization", (*check).decryption},

	{ruleWrongPort, findings.Error, "a route ends nowhere: the Service, its port, the pods or their port are not there", "follow the way from route to container, and make names and ports agree", (*check).routes},
	{ruleHeavyGate, findings.Warning, "a heavy chart is in a Kustomization that others wait for", "give the chart a Kustomization of its own that nothing waits for", (*check).gates},
	{ruleNamespace, findings.Warning, "objects are in a namespace that nothing makes", "add the Namespace, or write its right name", (*check).namespaces},

	{ruleLockdown, findings.Error, "an object needs what Flux refuses under its multi-tenancy lockdown: a reference to another namespace, a base at another host, rights without a service account; found with `--lockdown`, or where an object names `flux-reconciler` or a FluxInstance is multitenant",
		"keep references in the namespace, name a service account, copy the base", (*check).lockdown},

	{ruleDryRun, findings.Error, "the API server of the given cluster refuses the object", "see the message", (*check).dryRun},
}

func severity(rule string) findings.Severity {
	return rules[slices.IndexFunc(rules, func(r Rule) bool { return r.Name == rule })].Severity
}

// Rules are all rules, in the order in which a person reads about them.
func Rules() []Rule { return slices.Clone(rules) }

// Names are the names of all rules, sorted.
func Names() []string {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.Name)
	}
	slices.Sort(names)
	return names
}
