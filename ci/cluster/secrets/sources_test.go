package secrets

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/retry"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/sopstest"
	"tazlab.net/castle/ci/test/tell"
)

const (
	testProject = "11111111-2222-4333-8444-555555555555"
	testPath    = "/clusters/blue"

	testFluxPath, testWorkloadsPath = testPath + "/flux", testPath + "/workloads"
)

// world is a cluster's folder with its SOPS file, and a simulated Infisical with a door in front that a test can change.
type world struct {
	t         *testing.T
	cluster   *config.Cluster
	in        Inputs
	bootstrap map[string]string
	remote    map[string]string                 // in Infisical, each in the folder that it belongs into
	folders   map[string]map[string]string      // what else stands there, by folder
	readers   map[string][]infisical.Permission // roles of the identities that go into the cluster, where they are not as they should be
	role      []infisical.Permission            // of the machine identity; nil: everything
	policies  []infisical.Policy
	infisical *infisical.Server

	mu    sync.Mutex
	door  func(w http.ResponseWriter, r *http.Request) bool // true: it answered
	calls []string                                          // method and path of each request
	said  strings.Builder                                   // of retries
}

// canary is a value that is found wherever it leaks to.
func canary(t *testing.T) string {
	t.Helper()
	bytes := make([]byte, 16)
	rand.Read(bytes)
	return "canary-" + hex.EncodeToString(bytes)
}

// newWorld holds a complete cluster; edit may take things away before the SOPS file is written and Infisical is opened.
func newWorld(t *testing.T, edit func(w *world)) *world {
	t.Helper()
	key := sopstest.NewKey(t)
	w := &world{t: t,
		bootstrap: map[string]string{
			InfisicalClientID: "8c1f3a52-5f0e-4b7e-9d0a-6b1f0e2d3c4b", InfisicalClientSecret: canary(t),
			InfisicalFluxClientID: "the-reader-of-flux", InfisicalFluxClientSecret: canary(t),
			InfisicalWorkloadsClientID: "the-reader-of-workloads", InfisicalWorkloadsClientSecret: canary(t),
			ProxmoxAPIToken: "castle@pve!blue=01234567-89ab-4cde-8f01-23456789abcd", StatePassphrase: canary(t),
		},
		remote: map[string]string{GitOpsUsername: "git", GitOpsToken: canary(t), FluxAgeKey: sopstest.NewKey(t).String()},
	}
	w.in = Inputs{Folder: t.TempDir(), AgeKey: "# a comment\n" + key.String() + "\n",
		pace: &pace{attempt: 2 * time.Second, first: 5 * time.Millisecond, most: 20 * time.Millisecond, tries: 4, deadline: 10 * time.Second}}
	w.cluster = &config.Cluster{Name: "blue", Platform: config.PlatformProxmox, Secrets: config.Secrets{SOPS: []string{"secrets.sops.yaml"},
		Infisical: config.Infisical{Project: testProject, Slug: "garage", Environment: "prod", Path: testPath}.Complete()}}
	if edit != nil {
		edit(w)
	}
	w.encrypt(key.Recipient().String())

	var err error
	w.infisical, err = infisical.Open("", infisical.Seed{Projects: []infisical.Project{{
		ID: testProject, Slug: "garage",
		Clients:      w.clients(),
		Policies:     w.policies,
		Environments: map[string]map[string]map[string]string{"prod": w.environment()},
	}}}, profile.Profile{})
	if err != nil && w.bootstrap[InfisicalClientID] != "" {
		t.Fatal(err)
	}
	listening := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(listening.Close)
	w.cluster.Secrets.Infisical.URL = listening.URL
	return w
}

// clients are castle's identity and those that go into the cluster.
func (w *world) clients() []infisical.Client {
	clients := []infisical.Client{{ID: w.bootstrap[InfisicalClientID], Secret: orElse(w.bootstrap[InfisicalClientSecret], "none"), Permissions: w.role}}
	for _, r := range readersOf(w.cluster) {
		role, is := w.readers[r.id]
		if !is {
			role = []infisical.Permission{infisical.Reading("prod", r.folder)}
		}
		if w.bootstrap[r.id] != "" {
			clients = append(clients, infisical.Client{ID: w.bootstrap[r.id], Secret: orElse(w.bootstrap[r.secret], "none"), Permissions: role})
		}
	}
	return clients
}

// environment is what Infisical holds, by folder.
func (w *world) environment() map[string]map[string]string {
	held := map[string]map[string]string{testPath: {}, testFluxPath: {}}
	for name, value := range w.remote {
		held[placeOf(w.cluster).of(name).path][name] = value
	}
	for folder, values := range w.folders {
		if held[folder] == nil {
			held[folder] = map[string]string{}
		}
		maps.Copy(held[folder], values)
	}
	return held
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (w *world) serve(response http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.calls = append(w.calls, r.Method+" "+r.URL.Path)
	door := w.door
	w.mu.Unlock()
	if door != nil && door(response, r) {
		return
	}
	w.infisical.ServeHTTP(response, r)
}

// guard sets what stands in front of Infisical.
func (w *world) guard(door func(w http.ResponseWriter, r *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.door = door
}

// asked counts the requests whose path holds a text.
func (w *world) asked(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, call := range w.calls {
		if strings.Contains(call, text) {
			count++
		}
	}
	return count
}

// Write takes what is said of retries.
func (w *world) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(line)
}

func (w *world) notified() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

func (w *world) file() string { return filepath.Join(w.in.Folder, "secrets.sops.yaml") }

// encrypt writes the SOPS file.
func (w *world) encrypt(recipient string) {
	w.t.Helper()
	sopstest.Write(w.t, w.file(), recipient, w.bootstrap)
}

func (w *world) resolve() (*Values, error) {
	w.t.Helper()
	return Resolve(retry.To(w.t.Context(), w), w.cluster, w.in)
}

// resolved is resolve that must succeed.
func (w *world) resolved() *Values {
	w.t.Helper()
	values, err := w.resolve()
	if err != nil {
		w.t.Fatal(err)
	}
	return values
}

// fails is resolve that must not, and whose error holds no secret.
func (w *world) fails() error {
	w.t.Helper()
	values, err := w.resolve()
	if err == nil || values != nil {
		w.t.Fatalf("resolved %v, %v", values, err)
	}
	w.clean("the error", err.Error())
	tell.Observation(w.t, 0, "%v", err)
	return err
}

// clean searches a text for every secret of the world.
func (w *world) clean(where, text string) {
	w.t.Helper()
	for _, values := range []map[string]string{w.bootstrap, w.remote} {
		for name, value := range values {
			if !public[name] && strings.Contains(text, value) {
				w.t.Errorf("%s holds %s: %s", where, name, text)
			}
		}
	}
	for line := range strings.Lines(w.in.AgeKey) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "AGE-") && strings.Contains(text, line) {
			w.t.Errorf("%s holds the age key: %s", where, text)
		}
	}
}

// The key for planning opens the files for planning, and the reverse holds too: none of them has to open the others.
func TestPlanningOpensItsOwnFilesOnly(t *testing.T) {
	w := newWorld(t, nil)
	key := sopstest.NewKey(t)
	readOnly := maps.Clone(w.bootstrap)
	readOnly[ProxmoxAPIToken] = "castle@pve!plan=01234567-89ab-4cde-8f01-23456789abce"
	sopstest.Write(t, filepath.Join(w.in.Folder, "plan.secrets.sops.yaml"), key.Recipient().String(), readOnly)

	w.cluster.Secrets.Plan = []string{"plan.secrets.sops.yaml"}
	w.in.AgeKey = key.String()
	if _, err := Resolve(t.Context(), w.cluster, w.in); err == nil || !strings.Contains(err.Error(), "wrong age key") {
		t.Errorf("the key for planning opened what create reads: %v", err)
	}
	w.cluster.Secrets.ForPlanning()
	values, err := Resolve(t.Context(), w.cluster, w.in)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := values.Get(ProxmoxAPIToken); got != readOnly[ProxmoxAPIToken] {
		t.Errorf("planning got the token %s", got)
	}
}
