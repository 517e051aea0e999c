package workflows

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The script runs as a runner would run it. A server that does not know the properties leaves them empty.
func TestPublishingFailsWhereTheServerDoesNotSayWhichCastleItIs(t *testing.T) {
	script := firstScript(t, ".github/workflows/publish-blog.yaml", "publish", "which castle")
	const commit = "11bd71901bbe5b1630ceea73d27597364c9af683"
	for _, test := range []struct {
		repository, commit string
		well               bool
	}{
		{repository: "OWNER/castle", commit: commit, well: true},
		{repository: "", commit: ""},
		{repository: "", commit: commit},
		{repository: "OWNER/castle", commit: ""},
		{repository: "OWNER/castle", commit: "main"},
	} {
		said, err := run(t, script, "REPOSITORY="+test.repository, "COMMIT="+test.commit)
		if (err == nil) != test.well || !test.well && !strings.Contains(said, "::error::") {
			t.Errorf("of %q at %q: %v, %s", test.repository, test.commit, err, said)
		}
	}
}

func TestAPlanIsOfACommitThatCannotBeMoved(t *testing.T) {
	script := firstScript(t, ".github/workflows/plan.yaml", "plan", "the commit")
	for commit, well := range map[string]bool{"11bd71901bbe5b1630ceea73d27597364c9af683": true, "main": false, "": false, "11bd719": false, "refs/pull/7/head": false} {
		if said, err := run(t, script, "COMMIT="+commit); (err == nil) != well {
			t.Errorf("%q: %v, %s", commit, err, said)
		}
	}
}

// firstScript is that of a job's first step, whose name it has to have: what comes before it would run before it has looked.
func firstScript(t *testing.T, workflow, job, step string) string {
	t.Helper()
	f, err := Read(filepath.Join(repository, workflow), engineVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	all := steps(get(get(f.root, "jobs"), job))
	if i := slices.IndexFunc(all, func(each *yaml.Node) bool { return text(each, "name") == step }); i != 0 {
		t.Fatalf("the step %q is at %d, and has to be the first", step, i)
	}
	return text(all[0], "run")
}

func run(t *testing.T, script string, environment ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	command.Env = environment
	out, err := command.CombinedOutput()
	return string(out), err
}

// A pin that is new is shown; one that changed says that what it names is another thing.
func TestTheNightFailsWhereWhatIsPinnedIsAnother(t *testing.T) {
	f, err := Read(filepath.Join(repository, ".github/workflows/nightly.yaml"), engineVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	all := steps(get(get(f.root, "jobs"), "downloads"))
	script := "cd \"$FOLDER\"\n" + text(all[len(all)-1], "run")
	const chart = "charts:\n  one:\n    repository: https://charts.example\n"
	const lock = "provider \"registry.opentofu.org/bpg/proxmox\" {\n  hashes = [\n    \"zh:a\",\n  ]\n}\n"
	for name, test := range map[string]struct {
		charts, lock string
		well         bool
	}{
		"nothing":          {chart + "    digest: sha256:a\n", lock, true},
		"a new pin":        {chart + "    digest: sha256:a\n    url: x\n    digest: sha256:c\n", strings.Replace(lock, "zh:a\",", "zh:a\",\n    \"zh:b\",", 1), true},
		"another chart":    {chart + "    digest: sha256:b\n", lock, false},
		"another provider": {chart + "    digest: sha256:a\n", strings.Replace(lock, "zh:a", "zh:b", 1), false},
	} {
		folder := t.TempDir()
		for _, step := range []string{
			"cd \"$FOLDER\" && mkdir terragrunt && git init -q && printf %s \"$CHARTS\" > terragrunt/charts.yaml && printf %s \"$LOCK\" > terragrunt/providers.lock.hcl",
			"cd \"$FOLDER\" && git add . && git -c user.name=x -c user.email=x@example.org commit -qm pins",
		} {
			if said, err := run(t, step, append(os.Environ(), "FOLDER="+folder, "CHARTS="+chart+"    digest: sha256:a\n", "LOCK="+lock)...); err != nil {
				t.Fatal(said)
			}
		}
		write(t, filepath.Join(folder, "terragrunt/charts.yaml"), []byte(test.charts), 0o600)
		write(t, filepath.Join(folder, "terragrunt/providers.lock.hcl"), []byte(test.lock), 0o600)
		if said, err := run(t, script, append(os.Environ(), "FOLDER="+folder)...); (err == nil) != test.well {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
