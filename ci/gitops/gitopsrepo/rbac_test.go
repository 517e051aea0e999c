package gitopsrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/test/helmtest"
	"tazlab.net/castle/ci/test/kubetest"
)

// reviewed is testdata/rbac.yaml.
type reviewed struct {
	Grants   []grant
	Bindings []binding
	Charts   map[string]struct {
		Values map[string]any
		Never  []string
		Why    string
	}
}

type grant struct {
	Of, Name string
	Grants   []string
	Why      string
}

type binding struct{ Of, Name, Role, Why string }

func readReviewed(t *testing.T) reviewed {
	t.Helper()
	file, err := os.Open("testdata/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var r reviewed
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// much are the resources and the verbs with which somebody can read secrets, or become somebody else. pods/exec and nodes/proxy run commands.
var much = []string{"secrets", "*", "escalate", "bind", "impersonate", "nodes/proxy", "pods/exec", "serviceaccounts/token"}

// strong are roles of Kubernetes that hold some of these.
var strong = []string{"cluster-admin", "admin", "edit"}

// granted are those of much that a role grants.
func granted(role *unstructured.Unstructured) []string {
	var all []string
	for _, rule := range list(role.Object, "rules") {
		for _, field := range []string{"apiGroups", "resources", "verbs", "nonResourceURLs"} {
			words, _, _ := unstructured.NestedStringSlice(rule, field)
			for _, word := range words {
				if slices.Contains(much, word) && !slices.Contains(all, word) {
					all = append(all, word)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// review fails for each role and binding that grants much and was not reviewed, or was reviewed for less. It notes what it has met.
func (r reviewed) review(t *testing.T, of string, objects []*unstructured.Unstructured, met map[string]bool) {
	t.Helper()
	for _, object := range objects {
		kind, name := object.GetKind(), object.GetName()
		switch {
		case strings.HasSuffix(kind, "RoleBinding"):
			role := field(object, "roleRef", "name")
			if !slices.Contains(strong, role) {
				continue
			}
			at := slices.IndexFunc(r.Bindings, func(b binding) bool { return b.Of == of && b.Name == name && b.Role == role })
			if at < 0 || r.Bindings[at].Why == "" {
				t.Errorf("%s: %s %s makes somebody %s: take less, or review it in testdata/rbac.yaml", of, kind, name, role)
				continue
			}
			met[of+" "+name] = true
		case strings.HasSuffix(kind, "Role"):
			grants := granted(object)
			if len(grants) == 0 {
				continue
			}
			at := slices.IndexFunc(r.Grants, func(g grant) bool { return g.Of == of && g.Name == name })
			if at < 0 || r.Grants[at].Why == "" || !slices.Equal(r.Grants[at].Grants, grants) {
				t.Errorf("%s: %s %s grants %v: take less, or review it in testdata/rbac.yaml", of, kind, name, grants)
				continue
			}
			met[of+" "+name] = true
		}
	}
}

// metAll fails where something was reviewed that is there no more.
func (r reviewed) metAll(t *testing.T, met map[string]bool, of ...string) {
	t.Helper()
	for _, g := range r.Grants {
		if slices.Contains(of, g.Of) && !met[g.Of+" "+g.Name] {
			t.Errorf("testdata/rbac.yaml: %s has no %s that grants so much", g.Of, g.Name)
		}
	}
	for _, b := range r.Bindings {
		if slices.Contains(of, b.Of) && !met[b.Of+" "+b.Name] {
			t.Errorf("testdata/rbac.yaml: %s has no binding %s to %s", b.Of, b.Name, b.Role)
		}
	}
}

const theTemplate = "gitops-template"

func TestNoPartGrantsMoreThanWasReviewed(t *testing.T) {
	r, met := readReviewed(t), map[string]bool{}
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		r.review(t, theTemplate, b.all(), met)
		// What a chart grants that cannot be had here, the values decide that it is installed with.
		for _, release := range b.ofKind("HelmRelease") {
			chart := field(release, "spec", "chart", "spec", "chart")
			if ref := field(release, "spec", "chartRef", "name"); ref != "" {
				chart = ref
			}
			known, is := r.Charts[chart]
			if !is || known.Why == "" {
				t.Errorf("the chart %s was not reviewed: say in testdata/rbac.yaml what it grants, and with which values", chart)
				continue
			}
			values, _, _ := unstructured.NestedMap(release.Object, "spec", "values")
			for path, want := range known.Values {
				got, _, _ := unstructured.NestedFieldNoCopy(values, strings.Split(path, ".")...)
				if !reflect.DeepEqual(fmt.Sprint(got), fmt.Sprint(want)) {
					t.Errorf("%s: %s is %v, and was reviewed as %v: %s", chart, path, got, want, known.Why)
				}
			}
			for _, path := range known.Never {
				if got, there, _ := unstructured.NestedFieldNoCopy(values, strings.Split(path, ".")...); there {
					t.Errorf("%s: %s is %v, and was reviewed without: %s", chart, path, got, known.Why)
				}
			}
		}
	})
	if !t.Failed() {
		r.metAll(t, met, theTemplate)
	}
}

// The charts that Go modules have are rendered, and castle's own.
func TestNoChartGrantsMoreThanWasReviewed(t *testing.T) {
	r := readReviewed(t)
	for _, chart := range []struct {
		name, namespace string
		folder          func(t *testing.T) string
		values          []map[string]any
	}{
		{"flux", "flux-system", func(*testing.T) string { return "../../../terragrunt/charts/flux" }, []map[string]any{{}, {"multiTenancy": false}}},
		{"external-secrets", "external-secrets", in("external-secrets", "deploy/charts/external-secrets"), []map[string]any{{}}},
		{"metallb", "metallb-system", in("metallb", "charts/metallb"), []map[string]any{{}}},
		{"cert-manager", "cert-manager", in("cert-manager", "deploy/charts/cert-manager"), []map[string]any{{}}},
	} {
		t.Run(chart.name, func(t *testing.T) {
			met := map[string]bool{}
			for _, values := range chart.values {
				r.review(t, chart.name, helmtest.Objects(t, helmtest.Release{Chart: chart.folder(t), Name: chart.name, Namespace: chart.namespace, Values: values}), met)
			}
			if !t.Failed() {
				r.metAll(t, met, chart.name)
			}
		})
	}
}

// in is a folder of a project's Go module.
func in(project, folder string) func(*testing.T) string {
	return func(t *testing.T) string { return filepath.Join(kubetest.Module(t, project), folder) }
}

// A release is installed by an account of Flux's namespace: the one that may do anything, or one that may do what it needs in the release's
// namespace alone.
func TestEachReleaseIsInstalledBySomebodyWhoMay(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		for _, release := range b.ofKind("HelmRelease") {
			account, target := field(release, "spec", "serviceAccountName"), field(release, "spec", "targetNamespace")
			if release.GetNamespace() != "flux-system" || b.find("Namespace", "", target) == nil || field(release, "spec", "storageNamespace") != target ||
				field(release, "spec", "releaseName") != release.GetName() {
				t.Errorf("HelmRelease %s/%s goes into %q", release.GetNamespace(), release.GetName(), target)
			}
			if account == "flux-reconciler" {
				continue
			}
			bound := slices.ContainsFunc(b.ofKind("RoleBinding"), func(binding *unstructured.Unstructured) bool {
				subjects := list(binding.Object, "subjects")
				return binding.GetNamespace() == target && field(binding, "roleRef", "name") == "admin" && len(subjects) == 1 &&
					subjects[0]["name"] == account && subjects[0]["namespace"] == "flux-system"
			})
			if b.find("ServiceAccount", "flux-system", account) == nil || !bound {
				t.Errorf("HelmRelease %s: who is %q in %s?", release.GetName(), account, target)
			}
		}
	})
}

// Each namespace whose pods others reach, or that run what others wrote, denies by itself what no policy allows.
func TestTheBlogAndTheRunnersReachWhatTheyNeed(t *testing.T) {
	request := full(clusterFolder(t))
	request.With = []string{ActionsRunners}
	b := buildAll(t, rendered(t, request))
	for _, test := range []struct {
		namespace, name string
		egress, ingress int
	}{{"blog", "default-deny", 0, 0}, {"actions-runners", "runners", 2, 0}, {"actions-runner-controller", "controller", 2, 0}} {
		policy := b.find("NetworkPolicy", test.namespace, test.name)
		if policy == nil {
			t.Errorf("%s has no policy %s", test.namespace, test.name)
			continue
		}
		types, _, _ := unstructured.NestedStringSlice(policy.Object, "spec", "policyTypes")
		selector, _, _ := unstructured.NestedMap(policy.Object, "spec", "podSelector")
		if !slices.Equal(types, []string{"Ingress", "Egress"}) || len(selector) > 0 ||
			len(list(policy.Object, "spec", "egress")) != test.egress || len(list(policy.Object, "spec", "ingress")) != test.ingress {
			t.Errorf("%s in %s lets more through: %v", test.name, test.namespace, policy.Object["spec"])
		}
	}
	for _, namespace := range []string{"blog", "flux-system"} { // where cert-manager's solvers run
		if b.find("NetworkPolicy", namespace, "acme-solver") == nil {
			t.Errorf("Let's Encrypt does not reach a solver in %s", namespace)
		}
	}
	// The policy of the blog names the port of its container, and the namespace of Traefik's pods.
	text := string(b.files["apps/base/hugo-blog/network-policy.yaml"])
	if !strings.Contains(text, "port: http\n") || !strings.Contains(text, "kubernetes.io/metadata.name: traefik\n") {
		t.Errorf("who reaches the blog?\n%s", text)
	}
}

func TestRunnersJoinAGroup(t *testing.T) {
	request := full(clusterFolder(t))
	request.With, request.RunnerGroup = []string{ActionsRunners}, "on the cluster"
	files := rendered(t, request)
	if text := string(files["infrastructure/configs/actions-runners/release.yaml"]); !strings.Contains(text, `runnerGroup: "on the cluster"`) {
		t.Errorf("no group:\n%s", text)
	}
	if readme := string(files["README.md"]); !strings.Contains(readme, "--runner-group 'on the cluster'") {
		t.Error("the command to render it again has no group")
	}
}
