package gitopscheck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/test/drill/marked"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/test/tell"
)

// story plays a fault that happened to somebody: the bad repository of a rule's archive fails because of the rule, and the good one is
// let through. want are the beginnings of what is told: several findings of a rule may have one cause, and each is to be there.
func story(t *testing.T, rule, fault string, want ...string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", rule+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	tell.Fault(t, "%s", fault)
	report := run(t, Options{Dir: repository(t, archive, "bad")})
	var told []string
	for _, finding := range report.Findings {
		if finding.Rule == rule {
			told = append(told, finding.Message)
			tell.Observation(t, 0, "%s:%d: %s", finding.File, finding.Line, finding.Message)
		}
	}
	for _, begin := range want {
		if !slices.ContainsFunc(told, func(message string) bool { return strings.HasPrefix(message, begin) }) {
			t.Errorf("%q is not told: %q", begin, told)
		}
	}
	if report := run(t, Options{Dir: repository(t, archive, "good")}); len(report.Findings) > 0 {
		t.Errorf("found where all is in order:\n%s", lines(report))
	}
	tell.Success(t, "check-gitops", 0)
}

func TestCustomResourcesBesideTheirChartAreFound(t *testing.T) {
	story(t, ruleCRDWithCR, "a ServiceMonitor and a ClusterIssuer in the Kustomization whose charts define them",
		"ServiceMonitor default/web and 1 other object: the definition comes with HelmRelease default/prometheus",
		"ClusterIssuer self: the definition comes with HelmRelease default/cert-manager")
}

func TestAHeavyChartInAGateIsFound(t *testing.T) {
	story(t, ruleHeavyGate, "kube-prometheus-stack in a Kustomization that waits and that the apps wait for",
		"HelmRelease default/prometheus: kube-prometheus-stack takes minutes, and Kustomization flux-system/apps waits")
}

func TestARouteThatEndsNowhereIsFound(t *testing.T) {
	story(t, ruleWrongPort, "a Service that sends port 80 to 8000 of a container that listens at 8080, and routes to ports that the Service does not have",
		"Service default/web: port 80 leads to 8000", "Service default/named: port 80 leads to web", "Service default/nobody selects no pods",
		"Ingress default/missing leads to the Service default/wed, which does not exist", "Ingress default/number leads to port 8080 of Service default/web",
		"Ingress default/name leads to port web of Service default/web", "HTTPRoute default/route leads to port 8080 of Service default/web",
		"IngressRoute default/traefik leads to port https of Service default/web")
}

// With -update, the page is written anew.
func TestThePageShowsTheTableOfRules(t *testing.T) {
	page := filepath.Join("..", "..", "..", "docs", "gitops-check.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| rule | | what it finds | what to do |\n|---|---|---|---|\n")
	for _, rule := range Rules() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", rule.Name, rule.Severity, rule.Means, rule.Fix)
	}
	want, err := marked.Replace(string(text), "rules", table.String())
	if err != nil {
		t.Fatal(err)
	}
	golden.Match(t, page, want)
}
