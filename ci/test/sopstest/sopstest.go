// Package sopstest writes SOPS files for tests, as the sops command does.
package sopstest

import (
	"os"
	"testing"

	plainage "filippo.io/age"
	sops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/cmd/sops/common"
	"github.com/getsops/sops/v3/cmd/sops/formats"
	"github.com/getsops/sops/v3/config"
	"go.yaml.in/yaml/v3"
)

// NewKey makes an age key.
func NewKey(t testing.TB) *plainage.X25519Identity {
	t.Helper()
	key, err := plainage.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Write writes texts by name to a YAML file, encrypted to an age key ("age1…").
func Write(t testing.TB, file, recipient string, values map[string]string) {
	t.Helper()
	plain, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	data := encrypt(t, plain, recipient, sops.Metadata{UnencryptedSuffix: sops.DefaultUnencryptedSuffix})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Manifest is a Secret's YAML with its values encrypted to an age key, and all else readable, as Flux reads it.
func Manifest(t testing.TB, recipient, plain string) []byte {
	t.Helper()
	return encrypt(t, []byte(plain), recipient, sops.Metadata{EncryptedRegex: "^(data|stringData)$"})
}

func encrypt(t testing.TB, plain []byte, recipient string, metadata sops.Metadata) []byte {
	t.Helper()
	store := common.StoreForFormat(formats.Yaml, config.NewStoresConfig())
	branches, err := store.LoadPlainFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	key, err := age.MasterKeyFromRecipient(recipient)
	if err != nil {
		t.Fatal(err)
	}
	metadata.KeyGroups, metadata.Version = []sops.KeyGroup{{key}}, "3.13.3"
	tree := sops.Tree{Branches: branches, Metadata: metadata}
	dataKey, errs := tree.GenerateDataKey()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if err := common.EncryptTree(common.EncryptTreeOpts{Tree: &tree, Cipher: aes.NewCipher(), DataKey: dataKey}); err != nil {
		t.Fatal(err)
	}
	data, err := store.EmitEncryptedFile(tree)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
