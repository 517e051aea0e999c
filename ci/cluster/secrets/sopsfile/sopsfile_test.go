package sopsfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/getsops/sops/v3/decrypt"

	"tazlab.net/castle/ci/test/sopstest"
)

// documents have comments, kinds of values and an order that must survive.
var documents = map[string]string{
	"a.sops.yaml": "# about A\nB: two\nA: \"1\"\nnested:\n    list:\n        - x\n        - 3\n    lines: |\n        one\n        two\n",
	"a.sops.json": "{\n\t\"B\": \"two\",\n\t\"A\": 1\n}",
}

func TestAFileIsOpenedByItsKeysAndBySOPS(t *testing.T) {
	mine, other, stranger := sopstest.NewKey(t), sopstest.NewKey(t), sopstest.NewKey(t)
	for name, clear := range documents {
		data, err := Encrypt(name, []byte(clear), []string{mine.Recipient().String(), other.Recipient().String()})
		if err != nil || strings.Contains(string(data), "two") {
			t.Fatalf("%v\n%s", err, data)
		}
		for _, key := range []*age.X25519Identity{mine, other} {
			if got, err := Decrypt(name, data, "# mine\n"+key.String()+"\n"); err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(clear) {
				t.Errorf("%s: %v\n%s", name, err, got)
			}
		}
		t.Setenv("SOPS_AGE_KEY", mine.String()) // a key of the environment is not one that was given
		if _, err := Decrypt(name, data, stranger.String()); err == nil || !strings.Contains(err.Error(), "wrong age key") || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s is opened by any key: %v", name, err)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := decrypt.File(file, strings.TrimPrefix(filepath.Ext(name), ".")); err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(clear) {
			t.Errorf("SOPS reads %s as %v\n%s", name, err, got)
		}
	}
}

func TestARotatedFileHoldsTheSameForTheNewKeyAlone(t *testing.T) {
	old, next, friend := sopstest.NewKey(t), sopstest.NewKey(t), sopstest.NewKey(t)
	for name, clear := range documents {
		before, err := Encrypt(name, []byte(clear), []string{old.Recipient().String(), friend.Recipient().String()})
		if err != nil {
			t.Fatal(err)
		}
		after, err := Rotate(name, before, old.String(), next.Recipient().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []*age.X25519Identity{next, friend} {
			if got, err := Decrypt(name, after, key.String()); err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(clear) {
				t.Errorf("%s: %v\n%s", name, err, got)
			}
		}
		if _, err := Decrypt(name, after, old.String()); err == nil || !strings.Contains(err.Error(), "wrong age key") {
			t.Errorf("the old key still opens %s: %v", name, err)
		}
		if strings.Contains(string(after), old.Recipient().String()) {
			t.Errorf("%s still names the old key", name)
		}
	}
}

func TestAFileThatWasTamperedWithIsNotRotated(t *testing.T) {
	key := sopstest.NewKey(t)
	data, err := Encrypt("a.sops.yaml", []byte("A: one\nB: two\n"), []string{key.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	_, withoutA, _ := strings.Cut(string(data), "\n")
	for what, text := range map[string]string{"renamed": strings.Replace(string(data), "A: ENC", "C: ENC", 1), "removed": withoutA} {
		if _, err := Rotate("a.sops.yaml", []byte(text), key.String(), sopstest.NewKey(t).Recipient().String()); err == nil || !strings.Contains(err.Error(), "was changed after it was encrypted") {
			t.Errorf("a name was %s: %v", what, err)
		}
	}
	for text, want := range map[string]string{
		"A: in clear\n": "is not a SOPS file",
		"A: ENC[x]\nsops:\n    pgp:\n        - fp: ABCD\n          enc: x\n          created_at: \"2026-01-01T00:00:00Z\"\n    lastmodified: \"2026-01-01T00:00:00Z\"\n    mac: x\n    version: 3.13.3\n": "castle knows age alone",
	} {
		if _, err := Rotate("a.sops.yaml", []byte(text), key.String(), key.Recipient().String()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
