package secrets

import (
	"regexp"
	"strings"
	"testing"
)

func TestStateEncryptionEnforcesStatesAndPlans(t *testing.T) {
	const passphrase = `quote " dollar ${var.x} percent %{if} back \ slash <&>`
	text, err := StateEncryption("blue", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, passphrase) || !regexp.MustCompile(`passphrase    = "[0-9a-f]{64}"`).MatchString(text) {
		t.Errorf("the passphrase is not stretched in:\n%s", text)
	}
	again, err := StateEncryption("blue", passphrase)
	if err != nil || again != text {
		t.Errorf("the same passphrase gives another key: %v", err)
	}
	other, err := StateEncryption("green", passphrase)
	if err != nil || other == text {
		t.Errorf("another cluster has the same key: %v", err)
	}
	for _, block := range []string{"state", "plan"} {
		if !regexp.MustCompile(`(?m)^` + block + ` \{\n  method   = method\.aes_gcm\.castle\n  enforced = true\n\}$`).MatchString(text) {
			t.Errorf("%s is not enforced in:\n%s", block, text)
		}
	}
	if strings.Contains(text, "fallback") || strings.Contains(text, "unencrypted") {
		t.Errorf("something in clear is taken:\n%s", text)
	}
}

func TestAPassphraseThatOpenTofuCannotTakeIsRefused(t *testing.T) {
	for _, passphrase := range []string{"fifteen letters"} {
		if text, err := StateEncryption("blue", passphrase); err == nil || text != "" || strings.Contains(err.Error(), passphrase) {
			t.Errorf("%q: got %q, %v", passphrase, text, err)
		}
	}
}
