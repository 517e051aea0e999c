package gitopscheck

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// chart is what is known of a chart by its name.
type chart struct {
	defines []string // groups whose definitions it installs
	only    []string // a value, by its path, that has to be true for that
	heavy   bool     // its pods take minutes until they are ready
}

// known are charts that many clusters have. Definitions in a chart's crds folder, or that it installs unless told otherwise, come
// with it; those of cert-manager and others are asked for by a value.
var known = map[string]chart{
	"cert-manager":               {defines: []string{"cert-manager.io", "acme.cert-manager.io"}, only: []string{"crds", "enabled"}},
	"cloudnative-pg":             {defines: []string{"postgresql.cnpg.io"}},
	"eck-operator":               {defines: []string{"elasticsearch.k8s.elastic.co", "kibana.k8s.elastic.co"}},
	"elasticsearch":              {heavy: true},
	"external-secrets":           {defines: []string{"external-secrets.io", "generators.external-secrets.io"}},
	"gitlab":                     {heavy: true},
	"grafana-operator":           {defines: []string{"grafana.integreatly.org"}},
	"harbor":                     {heavy: true},
	"kafka":                      {heavy: true},
	"kube-prometheus-stack":      {defines: []string{"monitoring.coreos.com"}, heavy: true},
	"kyverno":                    {defines: []string{"kyverno.io"}},
	"loki":                       {heavy: true},
	"loki-distributed":           {heavy: true},
	"loki-stack":                 {heavy: true},
	"longhorn":                   {defines: []string{"longhorn.io"}, heavy: true},
	"metallb":                    {defines: []string{"metallb.io"}},
	"mimir-distributed":          {heavy: true},
	"opensearch":                 {heavy: true},
	"prometheus":                 {heavy: true},
	"rook-ceph":                  {defines: []string{"ceph.rook.io"}},
	"rook-ceph-cluster":          {heavy: true},
	"sealed-secrets":             {defines: []string{"bitnami.com"}},
	"strimzi-kafka-operator":     {defines: []string{"kafka.strimzi.io"}},
	"tempo-distributed":          {heavy: true},
	"traefik":                    {defines: []string{"traefik.io"}},
	"thanos":                     {heavy: true},
	"victoria-metrics-k8s-stack": {defines: []string{"operator.victoriametrics.com"}, heavy: true},
	"volsync":                    {defines: []string{"volsync.backube"}},
}

// Charts that hold definitions and little else.
func init() {
	for name, groups := range map[string][]string{
		"prometheus-operator-crds": {"monitoring.coreos.com"}, "traefik-crds": {"traefik.io", "gateway.networking.k8s.io"},
		"victoria-metrics-operator": {"operator.victoriametrics.com"}, "victoria-metrics-operator-crds": {"operator.victoriametrics.com"},
		"gateway-helm": {"gateway.networking.k8s.io", "gateway.envoyproxy.io"}, "gateway-crds-helm": {"gateway.networking.k8s.io", "gateway.envoyproxy.io"},
	} {
		known[name] = chart{defines: groups}
	}
}

const fluxRelease = "HelmRelease"

func isRelease(object *manifests.Object) bool { return object.Is(fluxtree.HelmGroup, fluxRelease) }

// chartOf is the name of a HelmRelease's chart, and the object that chartRef names; the name is empty where that is not known.
func chartOf(release *manifests.Object, in []*manifests.Object) (string, *manifests.Object) {
	if name := manifests.Text(release.Object, "spec", "chart", "spec", "chart"); name != "" {
		return path.Base(name), nil
	}
	kind, name := manifests.Text(release.Object, "spec", "chartRef", "kind"), manifests.Text(release.Object, "spec", "chartRef", "name")
	namespace := orElse(manifests.Text(release.Object, "spec", "chartRef", "namespace"), release.GetNamespace())
	for _, object := range in {
		if object.Is(fluxtree.SourceGroup, kind) && object.GetName() == name && object.GetNamespace() == namespace {
			if chart := manifests.Text(object.Object, "spec", "chart"); chart != "" { // of a HelmChart
				return path.Base(chart), object
			}
			return path.Base(manifests.Text(object.Object, "spec", "url")), object
		}
	}
	return "", nil
}

// defines are the groups whose definitions a HelmRelease installs.
func defines(release *manifests.Object, in []*manifests.Object) []string {
	name, _ := chartOf(release, in)
	chart := known[name]
	values := manifests.Map(release.Object, "spec", "values")
	if len(chart.only) > 0 && manifests.Value(values, chart.only...) != true && manifests.Value(values, "installCRDs") != true {
		return nil
	}
	if manifests.Value(values, "installCRDs") == false || manifests.Value(values, "crds", "enabled") == false || manifests.Value(values, "crds", "install") == false ||
		manifests.Text(release.Object, "spec", "install", "crds") == "Skip" {
		return nil
	}
	return chart.defines
}

// exactVersion is one release, with or without a v: no range, no part of a version.
var exactVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func (c *check) charts() {
	for _, part := range c.parts() {
		for _, object := range part.objects {
			switch {
			case object.Is(fluxtree.HelmGroup, fluxRelease):
				c.chartSource(object, part.objects, "spec", "chart", "spec")
			case object.Is(fluxtree.SourceGroup, "HelmChart"):
				c.chartSource(object, part.objects, "spec")
			case object.Is(fluxtree.SourceGroup, "OCIRepository") && c.isChart(object, part.objects):
				c.ociVersion(object)
			}
		}
	}
}

// chartSource looks at what pins the chart that an object names at that path.
func (c *check) chartSource(object *manifests.Object, in []*manifests.Object, at ...string) {
	spec := manifests.Map(object.Object, at...)
	chart := manifests.Text(spec, "chart")
	switch manifests.Text(spec, "sourceRef", "kind") {
	case "HelmRepository":
		c.version(object, append(at, "version"), chart)
	case "GitRepository":
		name := manifests.Text(spec, "sourceRef", "name")
		namespace := orElse(manifests.Text(spec, "sourceRef", "namespace"), object.GetNamespace())
		for _, source := range in {
			if source.Is(fluxtree.SourceGroup, "GitRepository") && source.GetName() == name && source.GetNamespace() == namespace &&
				!c.isReconciled(source) {
				c.gitVersion(source, chart)
			}
		}
	}
}

// isReconciled reports whether a Kustomization applies what a source has. Such a repository is the cluster's own, or a
// tenant's: it is followed on purpose.
func (c *check) isReconciled(source *manifests.Object) (is bool) {
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		ref := manifests.Map(k.Object.Object, "spec", "sourceRef")
		is = is || manifests.Text(ref, "kind") == source.GetKind() && manifests.Text(ref, "name") == source.GetName() &&
			orElse(manifests.Text(ref, "namespace"), k.Object.GetNamespace()) == source.GetNamespace()
	})
	return is
}

// gitVersion looks at the commit of a chart in another Git repository. Flux takes commit before name, semver, tag and
// branch (spec.ref in docs/spec/v1/gitrepositories.md of source-controller v1.9.5).
func (c *check) gitVersion(source *manifests.Object, chart string) {
	ref := manifests.Map(source.Object, "spec", "ref")
	name, semver := manifests.Text(ref, "name"), manifests.Text(ref, "semver")
	switch {
	case manifests.Text(ref, "commit") != "" || strings.HasPrefix(name, "refs/tags/"):
	case name == "" && semver != "":
		if !exactVersion.MatchString(semver) && !manifests.HasUnknown(semver) {
			c.on(source, []string{"spec", "ref", "semver"}, ruleChartRange, chart,
				"%s: %s is a range, so %s is another version on another day: write a tag or a commit", source.ID(), semver, chart)
		}
	case name == "" && manifests.Text(ref, "tag") != "":
	default:
		c.on(source, []string{"spec", "ref"}, ruleChartVersion, chart,
			"%s: %s comes from the newest commit of a branch: write spec.ref.tag or spec.ref.commit", source.ID(), chart)
	}
}

// isChart says that a HelmRelease beside it takes the chart that is in an OCIRepository.
func (c *check) isChart(repository *manifests.Object, beside []*manifests.Object) bool {
	for _, object := range beside {
		if isRelease(object) {
			if _, from := chartOf(object, []*manifests.Object{repository}); from != nil {
				return true
			}
		}
	}
	return false
}

// version looks at the version of a chart.
func (c *check) version(object *manifests.Object, at []string, chart string) {
	version := strings.TrimSpace(fmt.Sprint(orNothing(manifests.Value(object.Object, at...))))
	switch {
	case version == "" || version == "*" || version == "x":
		c.on(object, at, ruleChartVersion, chart, "%s: no version of %s is named, and each day has another newest one: write it", object.ID(), chart)
	case !exactVersion.MatchString(version) && !manifests.HasUnknown(version):
		c.on(object, at, ruleChartRange, chart, "%s: %s of %s is a range, and another version on another day: write one version", object.ID(), version, chart)
	}
}

// ociVersion looks at the version of a chart in an OCI registry. Flux takes digest before semver, and semver before tag
// (spec.ref in docs/spec/v1/ocirepositories.md of source-controller v1.9.5).
func (c *check) ociVersion(object *manifests.Object) {
	ref := manifests.Map(object.Object, "spec", "ref")
	tag, url := manifests.Text(ref, "tag"), manifests.Text(object.Object, "spec", "url")
	switch {
	case manifests.Text(ref, "digest") != "":
	case manifests.Text(ref, "semver") != "":
		if !exactVersion.MatchString(manifests.Text(ref, "semver")) {
			c.on(object, []string{"spec", "ref", "semver"}, ruleChartRange, url, "%s: %s of %s is a range, and another version on another day: write a tag", object.ID(), manifests.Text(ref, "semver"), url)
		}
	case tag != "" && tag != "latest":
	default:
		c.on(object, []string{"spec", "ref"}, ruleChartVersion, url, "%s: no version of %s is named, and each day has another newest one: write spec.ref.tag", object.ID(), url)
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func orNothing(value any) any {
	if value == nil {
		return ""
	}
	return value
}
