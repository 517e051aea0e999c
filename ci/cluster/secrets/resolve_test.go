package secrets

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/sopstest"
	"tazlab.net/castle/ci/test/tell"
)

func TestACompleteClusterIsResolvedWithOneLoginAndAListOfEachFolder(t *testing.T) {
	w := newWorld(t, nil)
	values := w.resolved()
	for _, source := range []map[string]string{w.bootstrap, w.remote} {
		for name, want := range source {
			if got, has := values.Get(name); !has || got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	want := append(slices.Collect(maps.Keys(w.bootstrap)), slices.Collect(maps.Keys(w.remote))...)
	slices.Sort(want)
	if got := values.names(); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	for _, entry := range values.Inventory() {
		if _, sops := w.bootstrap[entry.Name]; sops != (entry.Source == SourceSOPS) {
			t.Errorf("%s came from %s", entry.Name, entry.Source)
		}
	}
	if got := len(w.calls); got != 3 || w.asked("/login") != 1 || w.asked("GET /api/v3/secrets/raw") != 2 {
		t.Errorf("asked %v", w.calls)
	}
}

func TestReferencesBetweenSecretsAreResolved(t *testing.T) {
	w := newWorld(t, func(w *world) { w.remote["GITOPS_HEADER"] = "Bearer ${prod.clusters.blue.flux.GITOPS_TOKEN}" })
	if got, _ := w.resolved().Get("GITOPS_HEADER"); got != "Bearer "+w.remote[GitOpsToken] {
		t.Error("the reference was not expanded")
	}
}

func TestTheSOPSFileWinsOverInfisical(t *testing.T) {
	w := newWorld(t, func(w *world) { w.remote[StatePassphrase] = "another one that is long" })
	if got, _ := w.resolved().Get(StatePassphrase); got != w.bootstrap[StatePassphrase] {
		t.Errorf("got %q", got)
	}
}

func TestAllThatIsMissingIsNamedAtOnce(t *testing.T) {
	w := newWorld(t, func(w *world) {
		delete(w.bootstrap, StatePassphrase)
		w.bootstrap[ProxmoxAPIToken] = "root@pam=oops-not-a-token"
		delete(w.remote, GitOpsToken)
		w.remote[GitOpsUsername] = " "
		w.remote[FluxAgeKey] = "age1publicnotprivate"
		w.remote[GitOpsCA] = "not a certificate"
	})
	err := w.fails()
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || len(incomplete.Problems) != 6 {
		t.Fatalf("got %v", err)
	}
	at := "Infisical (" + w.cluster.Secrets.Infisical.URL + "), project garage, environment prod, path /clusters/blue/flux: add it there"
	in := w.file() + ": set it with \"sops edit " + w.file() + "\""
	for _, line := range []string{
		"STATE_PASSPHRASE is missing in " + in,
		"PROXMOX_API_TOKEN is not of the form user@realm!name=uuid in " + in,
		"GITOPS_TOKEN is missing in " + at,
		"GITOPS_USERNAME is empty in " + at,
		"SOPS_AGE_KEY is not an age key (AGE-SECRET-KEY-1…) in " + at,
		"GITOPS_CA is not a certificate in PEM in " + at,
	} {
		if !strings.Contains(err.Error(), "\n  "+line) {
			t.Errorf("%q is not said in:\n%v", line, err)
		}
	}
	if lines := strings.Count(err.Error(), "\n"); lines != 6 {
		t.Errorf("%d lines for 6 problems:\n%v", lines, err)
	}
}

func TestWithoutAClientTheErrorSaysWhatCouldNotBeAsked(t *testing.T) {
	w := newWorld(t, func(w *world) {
		delete(w.bootstrap, InfisicalClientID)
		delete(w.bootstrap, StatePassphrase)
	})
	err := w.fails()
	for _, part := range []string{"INFISICAL_CLIENT_ID is missing", "STATE_PASSPHRASE is missing", "path /clusters/blue is not known before"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not said in:\n%v", part, err)
		}
	}
	if len(w.calls) != 0 {
		t.Errorf("asked %v", w.calls)
	}
}

func TestASecretThatTheIdentityMayNotReadIsNamed(t *testing.T) {
	w := newWorld(t, func(w *world) { w.remote[GitOpsToken] = hiddenValue })
	if err := w.fails(); !strings.Contains(err.Error(), "GITOPS_TOKEN may be seen but not read") {
		t.Errorf("got %v", err)
	}
}

func TestAnS3StateNeedsItsKeys(t *testing.T) {
	w := newWorld(t, func(w *world) { w.cluster.State.Backend = "s3" })
	err := w.fails()
	for _, name := range []string{AWSAccessKeyID, AWSSecretAccessKey} {
		if !strings.Contains(err.Error(), name+" is missing in "+w.file()) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWrongAgeKey(t *testing.T) {
	other := sopstest.NewKey(t)
	for name, test := range map[string]struct{ key, want string }{
		"none":      {" \n", "no age key was given: "},
		"not a key": {"AGE-SECRET-KEY-1NONSENSE", "what was given as age key is none"},
		"public":    {other.Recipient().String(), "what was given as age key is none"},
		"wrong":     {other.String(), "wrong age key: "},
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "the age key is %s", name)
			w := newWorld(t, nil)
			right := w.in.AgeKey
			w.in.AgeKey = test.key
			t.Setenv("SOPS_AGE_KEY", right) // a key in the environment is not the one that was given
			err := w.fails()
			if !strings.HasPrefix(err.Error(), test.want) || !strings.Contains(err.Error(), w.file()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), test.key) {
				t.Errorf("the error quotes what was given: %v", err)
			}
			if len(w.calls) != 0 {
				t.Errorf("nothing may be started, and it asked %v", w.calls)
			}
		})
	}
}

func TestATamperedFileIsRefused(t *testing.T) {
	for name, tamper := range map[string]func(text string) string{
		"a value in clear is added": func(text string) string { return "EXTRA: smuggled\n" + text },
		"a name is removed": func(text string) string {
			_, rest, _ := strings.Cut(text, "\n")
			return rest
		},
		"a ciphertext is changed": func(text string) string { return strings.Replace(text, "data:", "data:AA", 1) },
		"values are swapped": func(text string) string {
			return strings.NewReplacer(InfisicalClientSecret, StatePassphrase, StatePassphrase, InfisicalClientSecret).Replace(text)
		},
		"the MAC is taken out": func(text string) string { return strings.Replace(text, "    mac: ", "    was: ", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			data, err := os.ReadFile(w.file())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.file(), []byte(tamper(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			failed := w.fails()
			if want := w.file() + " was changed after it was encrypted"; !strings.HasPrefix(failed.Error(), want) || strings.Contains(failed.Error(), "\n") {
				t.Errorf("got %v", failed)
			}
			if len(w.calls) != 0 {
				t.Errorf("nothing may be started, and it asked %v", w.calls)
			}
		})
	}
}

func TestAFileThatIsNoSOPSFileIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text *string
		want string
	}{
		"absent":   {nil, "does not exist"},
		"in clear": {text("STATE_PASSPHRASE: in clear for all to see\n"), "is not encrypted"},
		"no YAML":  {text("\t{"), "is not a SOPS file"},
		"PGP only": {text("A: ENC[x]\nsops:\n  pgp: [{fp: ABC}]\n"), "is not encrypted to an age key"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := os.Remove(w.file()); err != nil {
				t.Fatal(err)
			}
			if test.text != nil {
				if err := os.WriteFile(w.file(), []byte(*test.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := w.fails()
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), w.file()) || strings.Contains(err.Error(), "for all to see") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func text(s string) *string { return &s }

func TestTheEnvironmentIsAsBeforeAfterADecryption(t *testing.T) {
	w := newWorld(t, nil)
	command := filepath.Join(t.TempDir(), "ran")
	t.Setenv("SOPS_AGE_KEY_CMD", "touch "+command)
	t.Setenv("SOPS_AGE_KEY", "before")
	w.resolved()
	if got := os.Getenv("SOPS_AGE_KEY"); got != "before" {
		t.Errorf("SOPS_AGE_KEY is %q", got)
	}
	if os.Getenv("SOPS_AGE_KEY_CMD") == "" {
		t.Error("SOPS_AGE_KEY_CMD is gone")
	}
	if _, err := os.Stat(command); err == nil {
		t.Error("the command of SOPS_AGE_KEY_CMD ran")
	}
	os.Unsetenv("SOPS_AGE_KEY") //nolint:errcheck // t.Setenv restores it
	w.resolved()
	if _, set := os.LookupEnv("SOPS_AGE_KEY"); set {
		t.Error("SOPS_AGE_KEY stayed in the environment")
	}
}

func TestTheSandboxsFilesFitTogether(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "terragrunt", "live", "sandbox")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var seed struct {
		Proxmox struct {
			Nodes     []string `yaml:"nodes"`
			Templates []struct {
				ID int `yaml:"id"`
			} `yaml:"templates"`
			Tokens []string `yaml:"tokens"`
		} `yaml:"proxmox"`
		Infisical infisical.Seed `yaml:"infisical"`
		Git       struct {
			ReadToken string `yaml:"readToken"`
		} `yaml:"git"`
	}
	if err := yaml.Unmarshal(read("world.yaml"), &seed); err != nil {
		t.Fatal(err)
	}
	described, err := config.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	server, err := infisical.Open("", seed.Infisical, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.infisical = server
	described.Secrets.Infisical.URL = w.cluster.Secrets.Infisical.URL
	values, err := Resolve(t.Context(), described, Inputs{Folder: folder, AgeKey: string(read("age.key"))})
	if err != nil {
		t.Fatal(err)
	}
	if token, _ := values.Get(ProxmoxAPIToken); !slices.Contains(seed.Proxmox.Tokens, token) {
		t.Error("world.yaml does not hold the Proxmox token of secrets.sops.yaml")
	}
	if token, _ := values.Get(GitOpsToken); token != seed.Git.ReadToken {
		t.Error("world.yaml's Git server takes another token than Infisical holds")
	}
	for _, node := range described.Nodes {
		if !slices.Contains(seed.Proxmox.Nodes, node.Host) {
			t.Errorf("world.yaml lacks the Proxmox node %s", node.Host)
		}
	}
	if len(seed.Proxmox.Templates) == 0 || seed.Proxmox.Templates[0].ID != described.Proxmox.Template {
		t.Errorf("world.yaml's templates lack %d", described.Proxmox.Template)
	}
	if _, err := values.Establish(t.Context(), TalosSecrets, "cluster: {}\n"); err != nil {
		t.Error(err)
	}
}

func TestBlueSExampleHoldsNamesAndNoValues(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "terragrunt", "live", "blue", "secrets.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	example := map[string]string{}
	if err := yaml.Unmarshal(data, &example); err != nil {
		t.Fatal(err)
	}
	for name, value := range example {
		if value != "" {
			t.Errorf("%s has a value", name)
		}
	}
	for _, n := range needsOf(&config.Cluster{Platform: config.PlatformProxmox, State: config.State{Backend: "s3"},
		Secrets: config.Secrets{SOPS: []string{"secrets.sops.yaml"}, Infisical: config.Infisical{URL: "https://infisical.test"}}}) {
		if n.source == SourceSOPS && !strings.Contains(string(data), n.name+":") {
			t.Errorf("%s is not in the example", n.name)
		}
	}
}

func TestAnInterruptionEndsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // before its end a server does not see that the client is gone
		cancel()
		<-r.Context().Done()
		return true
	})
	_, err := Resolve(ctx, w.cluster, w.in)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
	if len(w.calls) != 1 {
		t.Errorf("asked %v", w.calls)
	}
}
