package timeline

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	canaryToken = `ghp/Canary"7f3a+9c1d=e5`
	canaryKey   = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEICanaryCanaryCanary\nQ2FuYXJ5Q2FuYXJ5Q2FuYXJ5Cg==\n-----END PRIVATE KEY-----\n"
	canaryYAML  = "cluster:\n    id: 0Xk3CanaryCanary9\n    secret: 'w7CanaryCanaryQ=='\n"
)

// leaks are the ways in which the canaries come to be in texts.
func leaks(t *testing.T) map[string]string {
	t.Helper()
	quoted, err := json.Marshal(canaryToken)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"plain":                  "token " + canaryToken + " refused",
		"in JSON":                `{"token":` + string(quoted) + `}`,
		"in a URL":               "https://git:" + url.PathEscape(canaryToken) + "@host/x?t=" + url.QueryEscape(canaryToken),
		"base64":                 base64.StdEncoding.EncodeToString([]byte(canaryToken)),
		"base64 for URLs":        base64.RawURLEncoding.EncodeToString([]byte(canaryToken)),
		"basic authentication":   "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("git:"+canaryToken)),
		"basic, longer name":     "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("flux-"+canaryToken+"x")),
		"a key's line":           "read key: MC4CAQAwBQYDK2VwBCIEICanaryCanaryCanary: bad",
		"a key in JSON":          `{"key":"` + strings.ReplaceAll(canaryKey, "\n", `\n`) + `"}`,
		"a key as data":          base64.StdEncoding.EncodeToString([]byte(canaryKey)),
		"a value of the YAML":    "secret w7CanaryCanaryQ== is no base64",
		"an id of the YAML":      "cluster 0Xk3CanaryCanary9",
		"the last line of a key": "Q2FuYXJ5Q2FuYXJ5Q2FuYXJ5Cg==",
	}
}

func canaryForms(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	for _, form := range []string{
		"Canary", base64.RawStdEncoding.EncodeToString([]byte(canaryToken))[:20], "Q2FuYXJ5", "AwBQYDK2Vw", "7f3a",
		base64.RawStdEncoding.EncodeToString([]byte("git:" + canaryToken))[8:26], base64.RawStdEncoding.EncodeToString([]byte(canaryKey))[40:80],
	} {
		if strings.Contains(text, form) {
			found = append(found, form)
		}
	}
	return found
}

func TestCanariesAreTakenOutOfEveryForm(t *testing.T) {
	redactor := NewRedactor(canaryToken, canaryKey)
	redactor.Add(canaryYAML)
	for name, text := range leaks(t) {
		if got := redactor.Redact(text); len(canaryForms(t, got)) > 0 || !strings.Contains(got, Redacted) {
			t.Errorf("%s: %s", name, got)
		}
		if len(canaryForms(t, text)) == 0 {
			t.Errorf("%s: the test would not see the canary in %s", name, text)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	redactor := NewRedactor("git", "", "  \n", canaryKey, canaryYAML)
	const text = "git clone; -----BEGIN PRIVATE KEY----- of cluster: id: secret:"
	if got := redactor.Redact(text); got != text {
		t.Errorf("got %s", got)
	}
	var none *Redactor
	if got := none.Redact(text); got != text {
		t.Errorf("a nil redactor made %s", got)
	}
}

func TestTheLongerOfTwoValuesIsTakenOutWhole(t *testing.T) {
	redactor := NewRedactor("hunter2", "hunter2-and-more")
	if got := redactor.Redact("x hunter2-and-more y"); got != "x "+Redacted+" y" {
		t.Errorf("got %s", got)
	}
}

// The log is redacted when it is written; where a process does not know a value, still whatever is made of the log is.
func TestNoCanaryIsInTheLogTheLinesOrTheReports(t *testing.T) {
	redactor := NewRedactor(canaryToken, canaryKey, canaryYAML)
	events := []Event{{Kind: KindRun, Name: "create", Cluster: "sandbox", Phase: PhaseStart}}
	for name, text := range leaks(t) {
		events = append(events,
			Event{Kind: KindLayer, Layer: name, Phase: PhaseStart},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseStart},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseWaiting, Cause: text},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseEnd, Result: ResultFailed, Cause: text, Next: text},
			Event{Kind: KindLayer, Layer: name, Phase: PhaseEnd, Result: ResultFailed, Cause: strings.Repeat("filler ", 580) + text, Next: text})
	}
	events = append(events, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultFailed, Cause: leaks(t)["plain"], Next: leaks(t)["plain"]})
	for i := range events {
		events[i].Time = dawn.Add(time.Duration(i) * time.Second)
	}

	name := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := Open(name, Redacting(redactor))
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	steps := NewSteps(&lines, Redacting(redactor))
	for _, event := range events {
		if err := log.Append(event); err != nil {
			t.Fatal(err)
		}
		steps.Show(event)
		steps.Tick(event.Time)
	}
	written, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"the log": string(written), "the step lines": lines.String()}
	made := Build(events, edges, Redacting(redactor))
	for kind, render := range map[string]func() ([]byte, error){"JSON": made.JSON, "Markdown": made.Markdown, "HTML": made.HTML} {
		data, err := render()
		if err != nil {
			t.Fatal(err)
		}
		texts[kind] = string(data)
	}
	for where, text := range texts {
		if found := canaryForms(t, text); len(found) > 0 || !strings.Contains(text, "redacted") {
			t.Errorf("%s: %q in\n%.3000s", where, found, text)
		}
	}
}

func TestValuesMayBecomeKnownWhileTextsAreRedacted(t *testing.T) {
	redactor := NewRedactor()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				redactor.Add(canaryToken)
				redactor.Redact("x " + canaryToken)
			}
		})
	}
	group.Wait()
	if got := redactor.Redact(canaryToken); got != Redacted {
		t.Errorf("got %s", got)
	}
}
