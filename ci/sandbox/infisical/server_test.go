package infisical_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/infisical/go-sdk"

	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
)

const (
	project = "11111111-2222-4333-8444-555555555555"
	slug    = "garage"
	folder  = "/clusters/blue"
)

func seed() infisical.Seed {
	return infisical.Seed{Projects: []infisical.Project{
		{
			ID: project, Slug: slug,
			Clients: []infisical.Client{
				{ID: "writer", Secret: "writer-secret"},
				{ID: "reader", Secret: "reader-secret", ReadOnly: true},
				{ID: "hasty", Secret: "hasty-secret", TokenTTL: time.Second},
			},
			Environments: map[string]map[string]map[string]string{"prod": {
				folder:            {"GITOPS_TOKEN": "tok", "GITOPS_URL": "https://x:${GITOPS_TOKEN}@git/${prod.shared.REPO}"},
				folder + "/extra": {"NESTED": "deep"},
				"/shared":         {"REPO": "k8s.git"},
			}},
		},
		{ID: "other", Slug: "other", Clients: []infisical.Client{{ID: "stranger", Secret: "stranger-secret"}}},
	}}
}

// world serves a simulator over loopback.
type world struct {
	t *testing.T
	*infisical.Server
	url string
}

func open(t *testing.T, file string, seed infisical.Seed, p profile.Profile) world {
	t.Helper()
	server, err := infisical.Open(file, seed, p)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	return world{t, server, listening.URL}
}

// client is the SDK's own, as External Secrets Operator uses it.
func (w world) client() sdk.InfisicalClientInterface {
	return sdk.NewInfisicalClient(w.t.Context(), sdk.Config{SiteUrl: w.url, SilentMode: true, AutoTokenRefresh: sdk.BoolPtr(false)})
}

func (w world) as(id string) sdk.InfisicalClientInterface {
	w.t.Helper()
	client := w.client()
	if _, err := client.Auth().UniversalAuthLogin(id, id+"-secret"); err != nil {
		w.t.Fatal(err)
	}
	return client
}

func list(client sdk.InfisicalClientInterface, options sdk.ListSecretsOptions) ([]sdk.Secret, error) {
	result, err := client.Secrets().ListSecrets(options)
	return result.Secrets, err
}

// call sends JSON and gives the status, the answer and its headers.
func (w world) call(method, path, token string, body any) (int, map[string]any, http.Header) {
	w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(data))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	answer := map[string]any{}
	if err := json.Unmarshal(text, &answer); err != nil {
		w.t.Fatalf("%s %s answered %q: %v", method, path, text, err)
	}
	return response.StatusCode, answer, response.Header
}

// refused checks what the SDK made of an answer.
func refused(t *testing.T, err error, status int, message string) {
	t.Helper()
	var answer *sdk.APIError
	if !errors.As(err, &answer) || answer.StatusCode != status || answer.ErrorMessage != message {
		t.Errorf("got %v, want %d %q", err, status, message)
	}
}

func TestExternalSecretsOperatorsCallsAreAnswered(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	client := w.as("reader")
	listed, err := list(client, sdk.ListSecretsOptions{ProjectSlug: slug, Environment: "prod", SecretPath: folder, Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) != 3 || listed[2].SecretKey != "NESTED" || listed[2].SecretPath != folder+"/extra" {
		t.Errorf("listed %+v", listed)
	}
	got, err := client.Secrets().Retrieve(sdk.RetrieveSecretOptions{
		ProjectSlug: slug, Environment: "prod", SecretPath: folder, SecretKey: "GITOPS_URL", IncludeImports: true, ExpandSecretReferences: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://x:tok@git/k8s.git"; got.SecretValue != want {
		t.Errorf("got %q, want %q", got.SecretValue, want)
	}
	if err := client.Auth().RevokeAccessToken(); err != nil {
		t.Fatal(err)
	}
}

func TestAListIsOfTheFolderAloneUnlessItIsRecursive(t *testing.T) {
	client := open(t, "", seed(), profile.Profile{}).as("reader")
	for path, want := range map[string]int{folder: 2, "/clusters": 0, "/nowhere": 0, "/shared/": 1} {
		listed, err := list(client, sdk.ListSecretsOptions{ProjectID: project, Environment: "prod", SecretPath: path})
		if err != nil || len(listed) != want {
			t.Errorf("%s: %d secrets, %v; want %d", path, len(listed), err, want)
		}
	}
}

func TestAWrongClientSecretIsRefused(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	for id, secret := range map[string]string{"writer": "reader-secret", "nobody": "", "": ""} {
		status, answer, _ := w.call("POST", "/api/v1/auth/universal-auth/login", "", map[string]string{"clientId": id, "clientSecret": secret})
		if status != http.StatusUnauthorized || answer["message"] != "Invalid credentials" {
			t.Errorf("%q: %d %v", id, status, answer)
		}
	}
}

func TestATokenEndsByTimeAndByRevocation(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	list := "/api/v3/secrets/raw?workspaceId=" + project + "&environment=prod&secretPath=" + folder
	if status, answer, _ := w.call("GET", list, "", nil); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %v", status, answer)
	}
	if status, answer, _ := w.call("GET", list, "garbage", nil); status != http.StatusForbidden || answer["error"] != "TokenError" {
		t.Errorf("with garbage: %d %v", status, answer)
	}

	hasty := w.as("hasty").Auth().GetAccessToken()
	if status, answer, _ := w.call("GET", list, hasty, nil); status != http.StatusOK {
		t.Fatalf("fresh: %d %v", status, answer)
	}
	status, renewed, _ := w.call("POST", "/api/v1/auth/token/renew", "", map[string]string{"accessToken": hasty})
	if status != http.StatusOK || renewed["accessToken"] == "" {
		t.Errorf("renewal: %d %v", status, renewed)
	}
	time.Sleep(2100 * time.Millisecond) // a JWT's times are whole seconds
	if status, answer, _ := w.call("GET", list, hasty, nil); status != http.StatusForbidden || answer["error"] != "TokenError" {
		t.Errorf("expired: %d %v", status, answer)
	}

	writer := w.as("writer").Auth().GetAccessToken()
	if status, answer, _ := w.call("POST", "/api/v1/auth/token/revoke", "", map[string]string{"accessToken": writer}); status != http.StatusOK {
		t.Fatalf("revocation: %d %v", status, answer)
	}
	if status, answer, _ := w.call("GET", list, writer, nil); status != http.StatusUnauthorized {
		t.Errorf("revoked: %d %v", status, answer)
	}
}

func TestASecretIsCreatedOnceUpdatedAndDeleted(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	secrets := w.as("writer").Secrets()
	create := sdk.CreateSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "TALOS_SECRETS", SecretValue: "  one\ntwo\n\n"}
	if made, err := secrets.Create(create); err != nil || made.Version != 1 || made.SecretKey != "TALOS_SECRETS" {
		t.Fatalf("%+v, %v", made, err)
	}
	if value, _ := w.Get(slug, "prod", folder, "TALOS_SECRETS"); value != "one\ntwo\n" {
		t.Errorf("kept %q", value)
	}
	_, err := secrets.Create(create)
	refused(t, err, http.StatusBadRequest, "Secret already exist")

	update := sdk.UpdateSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "TALOS_SECRETS", NewSecretValue: "three"}
	if made, err := secrets.Update(update); err != nil || made.Version != 2 {
		t.Errorf("%+v, %v", made, err)
	}
	remove := sdk.DeleteSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "TALOS_SECRETS"}
	if gone, err := secrets.Delete(remove); err != nil || gone.SecretValue != "three" {
		t.Errorf("%+v, %v", gone, err)
	}
	_, err = secrets.Update(update)
	refused(t, err, http.StatusNotFound, "Secret with name TALOS_SECRETS not found")
	_, err = secrets.Retrieve(sdk.RetrieveSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "TALOS_SECRETS"})
	refused(t, err, http.StatusNotFound, "Secret with name 'TALOS_SECRETS' not found")
	create.SecretPath = "/nowhere"
	_, err = secrets.Create(create)
	refused(t, err, http.StatusNotFound, "Folder with path '/nowhere' in environment with slug 'prod' not found")
}

func TestABatchIsCreatedWholeOrNotAtAll(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	batch := sdk.BatchCreateSecretsOptions{ProjectID: project, Environment: "prod", SecretPath: folder,
		Secrets: []sdk.BatchCreateSecret{{SecretKey: "NEW", SecretValue: "1"}, {SecretKey: "GITOPS_TOKEN", SecretValue: "2"}}}
	_, err := w.as("writer").Secrets().Batch().Create(batch)
	refused(t, err, http.StatusBadRequest, "Secret already exist: GITOPS_TOKEN")
	if _, has := w.Get(slug, "prod", folder, "NEW"); has {
		t.Error("half of the batch was kept")
	}
}

func TestAnIdentityReachesOnlyItsProjectAndRights(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	_, err := list(w.as("stranger"), sdk.ListSecretsOptions{ProjectID: project, Environment: "prod", SecretPath: folder})
	refused(t, err, http.StatusForbidden, "You are not a member of this project")
	_, err = list(w.as("writer"), sdk.ListSecretsOptions{ProjectSlug: "nothing", Environment: "prod", SecretPath: folder})
	refused(t, err, http.StatusNotFound, "Project with slug or id 'nothing' not found")
	_, err = w.as("reader").Secrets().Create(sdk.CreateSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "A", SecretValue: "b"})
	refused(t, err, http.StatusForbidden, "You are not allowed to create on secrets")
}

func TestFoldersAreMadeListedRenamedAndDeleted(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	folders := w.as("writer").Folders()
	made, err := folders.Create(sdk.CreateFolderOptions{ProjectID: project, Environment: "prod", Path: "/clusters", Name: "green"})
	if err != nil || made.Name != "green" || made.ParentID == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	if err := w.Put(slug, "prod", "/clusters/green", "KEY", "value"); err != nil {
		t.Fatal(err)
	}
	if _, err := folders.Update(sdk.UpdateFolderOptions{ProjectID: project, Environment: "prod", Path: "/clusters", FolderID: made.ID, NewName: "red"}); err != nil {
		t.Fatal(err)
	}
	if value, _ := w.Get(project, "prod", "/clusters/red", "KEY"); value != "value" {
		t.Errorf("the secret did not move with its folder: %q", value)
	}
	listed, err := folders.List(sdk.ListFoldersOptions{ProjectID: project, Environment: "prod", Path: "/clusters"})
	if err != nil || len(listed) != 2 || listed[0].Name != "blue" || listed[1].Name != "red" {
		t.Errorf("%+v, %v", listed, err)
	}
	if _, err := folders.Delete(sdk.DeleteFolderOptions{ProjectID: project, Environment: "prod", Path: "/clusters", FolderName: "red"}); err != nil {
		t.Fatal(err)
	}
	if _, has := w.Get(project, "prod", "/clusters/red", "KEY"); has {
		t.Error("the folder is gone and its secret is there")
	}
}

func TestTheStateSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "infisical.json")
	before := open(t, file, seed(), profile.Profile{})
	client := before.as("writer")
	kept, revoked := client.Auth().GetAccessToken(), before.as("writer").Auth().GetAccessToken()
	if _, err := client.Secrets().Update(sdk.UpdateSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "GITOPS_TOKEN", NewSecretValue: "changed"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Secrets().Delete(sdk.DeleteSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "GITOPS_URL"}); err != nil {
		t.Fatal(err)
	}
	before.call("POST", "/api/v1/auth/token/revoke", "", map[string]string{"accessToken": revoked})

	grown := seed()
	grown.Projects = append(grown.Projects, infisical.Project{ID: "later", Slug: "later", Environments: map[string]map[string]map[string]string{"dev": {"/": {"A": "b"}}}})
	after := open(t, file, grown, profile.Profile{})
	list := "/api/v3/secrets/raw?workspaceId=" + project + "&environment=prod&secretPath=" + folder
	status, answer, _ := after.call("GET", list, kept, nil)
	if secrets, _ := answer["secrets"].([]any); status != http.StatusOK || len(secrets) != 1 {
		t.Errorf("%d %v", status, answer)
	}
	if value, _ := after.Get(slug, "prod", folder, "GITOPS_TOKEN"); value != "changed" {
		t.Errorf("the seed undid an update: %q", value)
	}
	if status, _, _ := after.call("GET", list, revoked, nil); status != http.StatusUnauthorized {
		t.Errorf("a revoked token came back: %d", status)
	}
	if value, _ := after.Get("later", "dev", "/", "A"); value != "b" {
		t.Error("a project that is new in the seed was not added")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("partial files were left: %v", left)
	}
}

func TestAChangeThatCannotBeWrittenHasNotHappened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	w := open(t, filepath.Join(dir, "infisical.json"), seed(), profile.Profile{})
	token := w.as("writer").Auth().GetAccessToken()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder was
		t.Fatal(err)
	}
	status, answer, _ := w.call("POST", "/api/v3/secrets/raw/NEW", token, map[string]string{
		"workspaceId": project, "environment": "prod", "secretPath": folder, "secretValue": "x"})
	if status != http.StatusInternalServerError || strings.Contains(answer["message"].(string), dir) {
		t.Errorf("%d %v", status, answer)
	}
	if _, has := w.Get(slug, "prod", folder, "NEW"); has {
		t.Error("the answer was an error and the secret is there")
	}
}

func TestADamagedStateIsNamedAndKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "infisical.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := infisical.Open(file, seed(), profile.Profile{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(file); string(data) != "{" {
		t.Error("the damaged file was overwritten")
	}
}

func TestAboveTheRateLimitTheAnswerSaysWhenToComeBack(t *testing.T) {
	limited := seed()
	limited.RequestsPerMinute = 3
	w := open(t, "", limited, profile.Profile{})
	login := map[string]string{"clientId": "writer", "clientSecret": "writer-secret"}
	for range 3 {
		if status, answer, _ := w.call("POST", "/api/v1/auth/universal-auth/login", "", login); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
	}
	status, answer, header := w.call("POST", "/api/v1/auth/universal-auth/login", "", login)
	wait, err := time.ParseDuration(header.Get("Retry-After") + "s")
	if status != http.StatusTooManyRequests || err != nil || wait <= 0 || wait > time.Minute {
		t.Errorf("%d %v, Retry-After %q", status, answer, header.Get("Retry-After"))
	}
	if status, _, _ := w.call("GET", "/api/status", "", nil); status != http.StatusOK {
		t.Errorf("the status is limited too: %d", status)
	}
}

func TestMoodsRefuseTheFirstRequestsOfEveryOperation(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.InfisicalMoods: "2"}})
	login := map[string]string{"clientId": "writer", "clientSecret": "writer-secret"}
	for _, want := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusOK, http.StatusOK} {
		status, _, header := w.call("POST", "/api/v1/auth/universal-auth/login", "", login)
		if status != want || (status == http.StatusTooManyRequests) != (header.Get("Retry-After") == "1") {
			t.Errorf("login: %d with Retry-After %q, want %d", status, header.Get("Retry-After"), want)
		}
	}
	list := "/api/v3/secrets/raw?workspaceId=" + project + "&environment=prod&secretPath=" + folder
	if status, _, _ := w.call("GET", list, "", nil); status != http.StatusTooManyRequests {
		t.Errorf("list: %d", status)
	}
}

func TestAMissingSecretIsNeitherListedNorGiven(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.SecretMissing: "GITOPS_TOKEN"}})
	client := w.as("reader")
	listed, err := list(client, sdk.ListSecretsOptions{ProjectID: project, Environment: "prod", SecretPath: folder})
	if err != nil || len(listed) != 1 || listed[0].SecretKey != "GITOPS_URL" {
		t.Errorf("%+v, %v", listed, err)
	}
	_, err = client.Secrets().Retrieve(sdk.RetrieveSecretOptions{ProjectID: project, Environment: "prod", SecretPath: folder, SecretKey: "GITOPS_TOKEN"})
	refused(t, err, http.StatusNotFound, "Secret with name 'GITOPS_TOKEN' not found")
}

func TestRequestsWaitBesideEachOther(t *testing.T) {
	const delay = 300 * time.Millisecond
	w := open(t, "", seed(), profile.Profile{Scale: 0.5, Delays: profile.Delays{InfisicalRequest: 2 * delay}})
	token := w.as("reader").Auth().GetAccessToken()
	started := time.Now()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			w.call("GET", "/api/v3/secrets/raw?workspaceId="+project+"&environment=prod&secretPath="+folder, token, nil)
		})
	}
	group.Wait()
	if took := time.Since(started); took < delay || took > 7*delay {
		t.Errorf("8 requests of %s took %s", delay, took)
	}
}

func TestAnUnknownRouteIsNotFound(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{})
	if status, answer, _ := w.call("GET", "/api/v9/magic", "", nil); status != http.StatusNotFound || answer["message"] != "Route GET:/api/v9/magic not found" {
		t.Errorf("%d %v", status, answer)
	}
}
