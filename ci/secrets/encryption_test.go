package secrets

import (
	"regexp"
	"strings"
	"testing"
)

func TestStateEncryptionEnforcesStatesAndPlans(t *testing.T) {
	text, err := StateEncryption(`quote " dollar ${var.x} percent %{if} back \ slash <&>`)
	if err != nil {
		t.Fatal(err)
	}
	// What HCL would take for a template or an escape is none.
	if want := `passphrase = "quote \" dollar $${var.x} percent %%{if} back \\ slash <&>"`; !strings.Contains(text, want) {
		t.Errorf("%s is not in:\n%s", want, text)
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
	for _, passphrase := range []string{"fifteen letters", "two lines that\nare long enough", "not \xff UTF-8 and long enough"} {
		if text, err := StateEncryption(passphrase); err == nil || text != "" || strings.Contains(err.Error(), passphrase) {
			t.Errorf("%q: got %q, %v", passphrase, text, err)
		}
	}
}
