package redact

import (
	"encoding/base64"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/base/redact/redacttest"
)

func TestCanariesAreTakenOutOfEveryForm(t *testing.T) {
	redactor := New(redacttest.Token, redacttest.Key)
	redactor.Add(redacttest.YAML)
	for name, text := range redacttest.Leaks(t) {
		if got := redactor.Redact(text); len(redacttest.Found(got)) > 0 || !strings.Contains(got, Mark) {
			t.Errorf("%s: %s", name, got)
		}
		if len(redacttest.Found(text)) == 0 {
			t.Errorf("%s: the test would not see the canary in %s", name, text)
		}
	}
}

func TestNothingOfAValueInBase64IsLeft(t *testing.T) {
	for _, value := range []string{"hunter2", "hunter22", "hunter222"} {
		for _, text := range []string{base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value))} {
			if got := New(value).Redact(text); got != Mark {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	redactor := New("git", "", "  \n", redacttest.Key, redacttest.YAML, "-----BEGIN CERTIFICATE-----\nx\n",
		"apiVersion: v1\ncertificate-authority-data: x\n- client-key-data: x\n")
	const text = "git clone; -----BEGIN PRIVATE KEY----- -----BEGIN CERTIFICATE----- of cluster: id: secret: certificate-authority-data: client-key-data:"
	if got := redactor.Redact(text); got != text {
		t.Errorf("got %s", got)
	}
	var none *Redactor
	if got := none.Redact(text); got != text {
		t.Errorf("a nil redactor made %s", got)
	}
}

func TestThePartsOfAValueOfSeveralLinesAreTakenOut(t *testing.T) {
	redactor := New("first\n\"key\": \"-----BEGIN KEY-----\\nMC4CAQAwBQYD\",\n'of-a-list-one,of-a-list-two' ends-in-colon:\n")
	for _, part := range []string{`KEY-----\nMC4CAQAwBQYD`, "of-a-list-one,of-a-list-two", "of-a-list-one", "of-a-list-two", "ends-in-colon:"} {
		if got := redactor.Redact("x " + part + " y"); got != "x "+Mark+" y" {
			t.Errorf("%s: %s", part, got)
		}
	}
}

func TestTheLongerOfTwoValuesIsTakenOutWhole(t *testing.T) {
	redactor := New("hunter2", "hunter2-and-more")
	if got := redactor.Redact("x hunter2-and-more y"); got != "x "+Mark+" y" {
		t.Errorf("got %s", got)
	}
}

func TestAValueMayBecomeKnownAfterATextWasRedacted(t *testing.T) {
	redactor := New("hunter2")
	for _, value := range []string{"hunter2", "swordfish"} {
		redactor.Add(value)
		if got := redactor.Redact("x " + value + " y"); got != "x "+Mark+" y" {
			t.Errorf("got %s", got)
		}
	}
}

func TestValuesMayBecomeKnownWhileTextsAreRedacted(t *testing.T) {
	redactor := New()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				redactor.Add(redacttest.Token)
				redactor.Redact("x " + redacttest.Token)
			}
		})
	}
	group.Wait()
	if got := redactor.Redact(redacttest.Token); got != Mark {
		t.Errorf("got %s", got)
	}
}
