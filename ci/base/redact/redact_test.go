package redact

import (
	"encoding/base64"
	"encoding/pem"
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

func TestAValueOfSeveralLinesIsTakenOutWhole(t *testing.T) {
	value := strings.TrimSpace(redacttest.YAML)
	for _, text := range []string{value, strings.ReplaceAll(value, "\n", `\n`), base64.StdEncoding.EncodeToString([]byte(value))} {
		if got := New(redacttest.YAML).Redact(text); got != Mark {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestAKeyIsKnownInClearThatIsKeptInBase64(t *testing.T) {
	secret := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("canary of a key, longer than a line of PEM's 64 characters is")})
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("all the world may see this certificate")})
	redactor := New("certs:\n    key: " + base64.StdEncoding.EncodeToString(secret) + "\n    crt: " + base64.StdEncoding.EncodeToString(public) + "\n")
	for line := range strings.Lines(string(secret)) {
		line = strings.TrimSpace(line)
		if got := redactor.Redact(line); got != Mark && !strings.HasPrefix(line, "-----") {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := redactor.Redact(string(public)); got != string(public) {
		t.Errorf("a certificate is hidden: %s", got)
	}
}

func TestTheLongerOfTwoValuesIsTakenOutWhole(t *testing.T) {
	redactor := New("hunter2", "hunter2-and-more")
	if got := redactor.Redact("x hunter2-and-more y"); got != "x "+Mark+" y" {
		t.Errorf("got %s", got)
	}
}

func TestAShortValueIsTakenOutAsAWholeTokenOnly(t *testing.T) {
	const policy = "script-src 'sha256-47DEQpj8dockerHBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
	redactor := New("ab", "docker", "castle-7")
	for text, want := range map[string]string{
		policy: policy,
		"docker.io/ab-dockerfile dockers mydocker docker-hub castle-7b": "docker.io/ab-dockerfile dockers mydocker docker-hub castle-7b",
		"denied: docker.":                "denied: " + Mark + ".",
		"https://git:docker@host/":       "https://git:" + Mark + "@host/",
		`{"password":"docker"}`:          `{"password":"` + Mark + `"}`,
		`said\\ndocker\\n`:               `said\\n` + Mark + `\\n`,
		"p=docker&u=git%3Adocker%40":     "p=" + Mark + "&u=git%3A" + Mark + "%40",
		"\x1b[31mdocker\x1b[0m":          "\x1b[31m" + Mark + "\x1b[0m",
		"docker docker":                  Mark + " " + Mark,
		"castle-7":                       Mark,
		"Z2l0OmRvY2tlcg== of git:docker": "Z2l0Om" + Mark + "g== of git:" + Mark,
	} {
		if got := redactor.Redact(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
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
