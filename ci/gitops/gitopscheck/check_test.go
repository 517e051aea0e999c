package gitopscheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/rendering/renderingtest"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/base/golden"
)

// apps is the Kustomization that each repository of testdata has which brings no other.
const apps = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./apps
  sourceRef: {kind: GitRepository, name: flux-system}
`

// repository writes the files of an archive that are below a folder.
func repository(t *testing.T, archive *txtar.Archive, folder string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"clusters/home/apps.yaml": apps}
	for _, file := range archive.Files {
		if name, is := strings.CutPrefix(file.Name, folder+"/"); is {
			files[name] = string(file.Data)
		}
	}
	filetest.All(t, dir, files)
	return dir
}

func run(t *testing.T, options Options) Report {
	t.Helper()
	report, err := Check(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func lines(report Report) string {
	var text strings.Builder
	for _, finding := range report.Findings {
		fmt.Fprintf(&text, "%s:%d: %s: %s\n", finding.File, finding.Line, finding.Rule, finding.Message)
	}
	return text.String()
}

// Each rule has an archive in testdata with a bad repository and one that is in order. Its last file, findings, is all that is
// found in the bad one.
func TestEachRuleFindsTheBadAndLeavesTheGood(t *testing.T) {
	for _, rule := range Names() {
		if rule == ruleDryRun {
			continue // asks a cluster
		}
		t.Run(rule, func(t *testing.T) {
			name := filepath.Join("testdata", rule+".txtar")
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := lines(run(t, Options{Dir: repository(t, archive, "bad")}))
			if golden.Update() {
				archive.Files = slices.DeleteFunc(archive.Files, func(file txtar.File) bool { return file.Name == "findings" })
				archive.Files = append(archive.Files, txtar.File{Name: "findings", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if last := archive.Files[len(archive.Files)-1]; last.Name != "findings" || got != string(last.Data) {
				t.Errorf("found in the bad repository:\n%s\nwanted:\n%s", got, last.Data)
			}
			if !strings.Contains(got, ": "+rule+": ") {
				t.Errorf("nothing in the bad repository breaks the rule: %s", got)
			}
			if got := lines(run(t, Options{Dir: repository(t, archive, "good")})); got != "" {
				t.Errorf("found in the good repository:\n%s", got)
			}
		})
	}
}

// whatItSays is a cluster that answers by an object's name.
type whatItSays map[string][2]string

func (w whatItSays) DryRun(_ context.Context, object *manifests.Object) (refused, later string, err error) {
	if object.GetName() == "silent" {
		return "", "", errors.New("no answer")
	}
	return w[object.GetName()][0], w[object.GetName()][1], nil
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {greeting: \"%s\"}\n"

func TestAClusterIsAskedAboutWhatIsKnownWhole(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"clusters/home/apps.yaml": apps + "  postBuild: {substituteFrom: [{kind: Secret, name: elsewhere}]}\n"}
	for _, name := range []string{"good", "refused", "later", "silent"} {
		files["apps/"+name+".yaml"] = fmt.Sprintf(settings, name, "hello")
	}
	files["apps/unknown.yaml"] = fmt.Sprintf(settings, "unknown", "${NAME}")
	filetest.All(t, dir, files)
	report := run(t, Options{Dir: dir, Cluster: whatItSays{"refused": {"it is too large", ""}, "later": {"", "there is no such kind yet"}, "unknown": {"must not be asked", ""}}})
	if got, want := lines(report), "apps/refused.yaml:1: dry-run: ConfigMap default/refused: the cluster refuses it: it is too large\n"; got != want {
		t.Errorf("%s\nwanted %s", got, want)
	}
	want := []string{
		"ConfigMap default/later: there is no such kind yet",
		"ConfigMap default/silent: the cluster gave no answer: no answer",
		"ConfigMap default/unknown is encrypted, or has values that are not in the repository: the cluster was not asked",
	}
	if !slices.Equal(report.Notes, want) {
		t.Errorf("notes %q, wanted %q", report.Notes, want)
	}
}

func TestAReportIsReadInEveryFormat(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "wrong-port.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := repository(t, archive, "bad")
	filetest.All(t, dir, map[string]string{
		"clusters/home/more.yaml":   strings.NewReplacer("apps", "more").Replace(apps),
		"more/kustomization.yaml":   "resources: [https://example.org/a.yaml, https://example.org/b.yaml, alert.yaml]\n",
		"more/alert.yaml":           "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: all, namespace: flux-system}\n",
		"elsewhere/sync.yaml":       strings.NewReplacer("apps", "other", "flux-system}\n", "theirs}\n").Replace(apps),
		"clusters/home/tenant.yaml": strings.NewReplacer("./apps", "./", "name: apps", "name: tenant", "GitRepository, name: flux-system", "GitRepository, name: theirs").Replace(apps),
	})
	renderingtest.MustRead(t, "report", run(t, Options{Dir: dir, Ignore: []string{"wrong-port:apps/traefik.yaml"}}))
}

func TestALockdownThatNothingShowsIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	filetest.All(t, dir, map[string]string{
		"clusters/home/apps.yaml": strings.Replace(apps, "namespace: flux-system", "namespace: team", 1),
		"apps/settings.yaml":      fmt.Sprintf(settings, "settings", "hello"),
	})
	if report := run(t, Options{Dir: dir}); lines(report) != "" || !slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, "--lockdown names them") }) {
		t.Errorf("found %s, noted %q", lines(report), report.Notes)
	}
	if got := lines(run(t, Options{Dir: dir, Lockdown: true})); !strings.Contains(got, "lockdown: Kustomization team/apps names no service account") {
		t.Errorf("found %s", got)
	}
}

func TestNothingToCheckIsNoFinding(t *testing.T) {
	report := run(t, Options{Dir: t.TempDir()})
	if report.Text() != nothing || report.Markdown() != nothing || report.Errors != 0 {
		t.Errorf("%q, %q", report.Text(), report.Markdown())
	}
}

func TestMistakesInTheOptionsAreNamed(t *testing.T) {
	for want, options := range map[string]Options{
		`"ports" is no rule; want one of api-version, `: {Ignore: []string{"ports"}},
		"there is no folder clusters/work":              {Path: "clusters/work"},
		"read the definitions":                          {CRDs: []string{"missing"}},
	} {
		options.Dir = t.TempDir()
		if _, err := Check(t.Context(), options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, wanted %s", err, want)
		}
	}
	if _, err := Check(t.Context(), Options{Dir: "missing"}); err == nil {
		t.Error("a repository that is not there was read")
	}
}
