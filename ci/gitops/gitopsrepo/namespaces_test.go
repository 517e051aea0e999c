package gitopsrepo

import (
	"path/filepath"
	"slices"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
)

func TestTheStoreServesEachNamespaceThatAsksForASecret(t *testing.T) {
	c, err := config.Load(filepath.Join("..", "..", "..", "terragrunt", "live", "blue"))
	if err != nil {
		t.Fatal(err)
	}
	served := c.Secrets.Infisical.Namespaces
	for _, s := range secrets {
		if !slices.Contains(served, s.Namespace) {
			t.Errorf("secrets.infisical.namespaces serves %v by default, and %s of %s is in %s", served, s.Name, s.Part, s.Namespace)
		}
	}
	for _, namespace := range served {
		if !slices.ContainsFunc(secrets, func(s secret) bool { return s.Namespace == namespace }) {
			t.Errorf("nothing asks for a secret in %s", namespace)
		}
	}
}
