package workflows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDocumentNamesEveryInput(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(repository, "docs/github-actions.md"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(filepath.Join(repository, ".github/workflows/publish-blog.yaml"), engineVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	call := get(get(f.root, "on"), "workflow_call")
	inputs := pairs(get(call, "inputs"))
	if len(inputs) < 5 {
		t.Fatalf("it has %d inputs", len(inputs))
	}
	for _, input := range inputs {
		if !strings.Contains(string(document), "\n| `"+input.key.Value+"` |") {
			t.Errorf("docs/github-actions.md has no row for the input %s", input.key.Value)
		}
	}
	for _, secret := range pairs(get(call, "secrets")) {
		if !strings.Contains(string(document), secret.key.Value+": ${{ secrets.") {
			t.Errorf("docs/github-actions.md does not show the secret %s", secret.key.Value)
		}
	}
}
