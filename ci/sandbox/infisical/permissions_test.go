package infisical_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/infisical/go-sdk"

	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
)

// bound is the seed with one more identity, which has a role of these rules.
func bound(rules ...infisical.Permission) infisical.Seed {
	seed := seed()
	seed.Projects[0].Clients = append(seed.Projects[0].Clients, infisical.Client{ID: "bound", Secret: "bound-secret", Permissions: rules})
	return seed
}

func secretsRule(path string, actions ...string) infisical.Permission {
	return infisical.Permission{Subject: "secrets", Actions: actions, SecretPath: path}
}

// get asks for one secret as the SDK does, and gives the status and the answer.
func (w world) get(token, name, query string) (int, map[string]any) {
	w.t.Helper()
	status, answer, _ := w.call("GET", "/api/v3/secrets/raw/"+name+"?workspaceId="+project+"&environment=prod&secretPath="+folder+query, token, nil)
	return status, answer
}

// list asks for the folder's secrets.
func (w world) list(token, query string) (int, map[string]any) {
	w.t.Helper()
	status, answer, _ := w.call("GET", "/api/v3/secrets/raw?workspaceId="+project+"&environment=prod&secretPath="+folder+query, token, nil)
	return status, answer
}

func (w world) change(method, token, name string) (int, map[string]any) {
	w.t.Helper()
	status, answer, _ := w.call(method, "/api/v3/secrets/raw/"+name, token, map[string]string{
		"workspaceId": project, "environment": "prod", "secretPath": folder, "secretValue": "new"})
	return status, answer
}

func (w world) token(id string) string { return w.as(id).Auth().GetAccessToken() }

// told checks a refusal.
func told(t *testing.T, status int, answer map[string]any, want int, kind, message string) {
	t.Helper()
	if status != want || answer["error"] != kind || answer["message"] != message {
		t.Errorf("got %d %v, want %d %s %q", status, answer, want, kind, message)
	}
}

func TestOutsideOfItsPathsAnIdentitySeesNothingAndIsToldNothing(t *testing.T) {
	w := open(t, "", bound(secretsRule("/shared/**", "describeSecret", "readValue", "create", "edit", "delete")), profile.Profile{})
	token := w.token("bound")
	if status, answer := w.list(token, ""); status != http.StatusOK || len(answer["secrets"].([]any)) != 0 {
		t.Errorf("a list of another path: %d %v", status, answer)
	}
	for _, name := range []string{"GITOPS_TOKEN", "NOTHING"} {
		status, answer := w.get(token, name, "")
		told(t, status, answer, http.StatusForbidden, "PermissionDenied", "You are not allowed to describeSecret on secrets")
	}
	listed, err := list(w.as("bound"), sdk.ListSecretsOptions{ProjectID: project, Environment: "prod", SecretPath: "/shared"})
	if err != nil || len(listed) != 1 || listed[0].SecretValue != "k8s.git" {
		t.Errorf("its own path: %+v, %v", listed, err)
	}
	// What is there or not there comes before what is allowed.
	status, answer := w.change("POST", token, "GITOPS_TOKEN")
	told(t, status, answer, http.StatusBadRequest, "BadRequest", "Secret already exist")
	for _, method := range []string{"PATCH", "DELETE"} {
		if status, answer := w.change(method, token, "NOTHING"); status != http.StatusNotFound {
			t.Errorf("%s: %d %v", method, status, answer)
		}
	}
	for method, name := range map[string]string{"POST create": "NOTHING", "PATCH edit": "GITOPS_TOKEN", "DELETE delete": "GITOPS_TOKEN"} {
		method, action, _ := strings.Cut(method, " ")
		status, answer := w.change(method, token, name)
		told(t, status, answer, http.StatusForbidden, "PermissionDenied", "You are not allowed to "+action+" on secrets")
	}
	if value, _ := w.Get(slug, "prod", folder, "GITOPS_TOKEN"); value != "tok" {
		t.Errorf("it was changed: %q", value)
	}
}

func TestWithoutAnyRuleOnSecretsAListIsRefused(t *testing.T) {
	w := open(t, "", bound(infisical.Permission{Subject: "secret-folders", Actions: []string{"create"}, SecretPath: "/shared"}), profile.Profile{})
	status, answer := w.list(w.token("bound"), "")
	told(t, status, answer, http.StatusForbidden, "PermissionDenied", "You are not allowed to describeSecret on secrets")
	folders := w.as("bound").Folders()
	if _, err := folders.Create(sdk.CreateFolderOptions{ProjectID: project, Environment: "prod", Path: "/shared", Name: "green"}); err != nil {
		t.Error(err)
	}
	_, err := folders.Create(sdk.CreateFolderOptions{ProjectID: project, Environment: "prod", Path: "/clusters", Name: "green"})
	refused(t, err, http.StatusForbidden, "You are not allowed to create on secret-folders")
	_, err = folders.Delete(sdk.DeleteFolderOptions{ProjectID: project, Environment: "prod", Path: "/shared", FolderName: "green"})
	refused(t, err, http.StatusForbidden, "You are not allowed to delete on secret-folders")
}

// Whoever may only describe gets no list with values at all, names without values, and each value refused by its name.
func TestAValueThatMayNotBeReadRefusesTheWholeList(t *testing.T) {
	hidden := secretsRule("", "readValue", "read")
	hidden.Inverted, hidden.SecretName = true, "GITOPS_TOKEN"
	for name, rules := range map[string][]infisical.Permission{
		"it may describe alone": {secretsRule("/clusters/*", "describeSecret", "edit")},
		"one is forbidden":      {secretsRule("/clusters/*", "describeSecret", "readValue", "edit"), hidden},
		"with the old action":   {secretsRule("/clusters/*", "read", "edit"), hidden, secretsRule("", "describeSecret")},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, "", bound(rules...), profile.Profile{})
			token := w.token("bound")
			status, answer := w.list(token, "")
			told(t, status, answer, http.StatusForbidden, "PermissionDenied", "You are not allowed to readValue on secrets")
			status, answer = w.list(token, "&viewSecretValue=false&expandSecretReferences=true")
			if secrets, _ := answer["secrets"].([]any); status != http.StatusOK || len(secrets) != 2 {
				t.Fatalf("names alone: %d %v", status, answer)
			}
			for _, one := range answer["secrets"].([]any) {
				if one := one.(map[string]any); one["secretValue"] != "<hidden-by-infisical>" || one["secretValueHidden"] != true {
					t.Errorf("shown is %v", one)
				}
			}
			status, answer = w.get(token, "GITOPS_TOKEN", "")
			told(t, status, answer, http.StatusForbidden, "ForbiddenReadSecretError", "You do not have permission to view secret value on secret with name 'GITOPS_TOKEN'")
			if status, answer = w.get(token, "GITOPS_TOKEN", "&viewSecretValue=false"); status != http.StatusOK || answer["secret"].(map[string]any)["secretValue"] != "<hidden-by-infisical>" {
				t.Errorf("by its name: %d %v", status, answer)
			}
			if status, answer = w.get(token, "GITOPS_URL", "&expandSecretReferences=true"); status != http.StatusForbidden || answer["error"] != "ForbiddenError" {
				t.Errorf("a reference to it: %d %v", status, answer)
			}
			if status, answer = w.change("PATCH", token, "GITOPS_TOKEN"); status != http.StatusOK || answer["secret"].(map[string]any)["secretValue"] != "<hidden-by-infisical>" {
				t.Errorf("a change of it: %d %v", status, answer)
			}
		})
	}
}

func TestAnUnreadableReferenceRefusesTheListThatExpandsIt(t *testing.T) {
	w := open(t, "", bound(secretsRule("/clusters/**", "describeSecret", "readValue")), profile.Profile{})
	token := w.token("bound")
	if status, answer := w.list(token, ""); status != http.StatusOK {
		t.Errorf("as they are: %d %v", status, answer)
	}
	status, answer := w.list(token, "&expandSecretReferences=true")
	told(t, status, answer, http.StatusForbidden, "ForbiddenError", "Failed to expand one or more secret references")
	if status, answer := w.list(token, "&recursive=true"); status != http.StatusOK || len(answer["secrets"].([]any)) != 3 {
		t.Errorf("with what is below: %d %v", status, answer)
	}
}

// Below the folder that a list is asked of, what may not be read is left out like what may not be seen.
func TestARecursiveListLeavesOutWhatMayNotBeReadBelow(t *testing.T) {
	unseen := infisical.Permission{Subject: "secrets", Actions: []string{"describeSecret"}, Inverted: true, SecretName: "GITOPS_URL"}
	w := open(t, "", bound(secretsRule("/clusters/**", "describeSecret"), secretsRule(folder, "readValue"), unseen), profile.Profile{})
	token := w.token("bound")
	for query, want := range map[string]string{"&recursive=true": "GITOPS_TOKEN", "&recursive=true&viewSecretValue=false": "GITOPS_TOKEN NESTED"} {
		status, answer := w.list(token, query)
		var names []string
		if secrets, is := answer["secrets"].([]any); is {
			for _, one := range secrets {
				names = append(names, one.(map[string]any)["secretKey"].(string))
			}
		}
		if got := strings.Join(names, " "); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %q, want %q", query, status, got, want)
		}
	}
}

func TestFaultsBindEveryIdentity(t *testing.T) {
	w := open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.SecretHidden: "GITOPS_TOKEN"}})
	if status, answer := w.get(w.token("writer"), "GITOPS_TOKEN", ""); status != http.StatusForbidden {
		t.Errorf("hidden: %d %v", status, answer)
	}
	if status, answer := w.change("PATCH", w.token("writer"), "GITOPS_TOKEN"); status != http.StatusOK {
		t.Errorf("hidden, and changed: %d %v", status, answer)
	}
	if status, answer := w.get(w.token("reader"), "GITOPS_URL", ""); status != http.StatusOK {
		t.Errorf("another one: %d %v", status, answer)
	}
	w = open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.SecretHidden: profile.AllSecrets}})
	if status, answer := w.get(w.token("writer"), "GITOPS_URL", ""); status != http.StatusForbidden {
		t.Errorf("all: %d %v", status, answer)
	}
	w = open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.InfisicalPaths: ""}})
	if status, answer := w.list(w.token("writer"), ""); status != http.StatusOK || len(answer["secrets"].([]any)) != 0 {
		t.Errorf("bound elsewhere: %d %v", status, answer)
	}
	w = open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.InfisicalPaths: "/clusters/*"}})
	if status, answer := w.list(w.token("writer"), ""); status != http.StatusOK || len(answer["secrets"].([]any)) != 2 {
		t.Errorf("bound here: %d %v", status, answer)
	}
}

func TestAPathsGlobIsReadAsInfisicalDoes(t *testing.T) {
	for pattern, fits := range map[string]bool{
		"": true, folder: true, "/clusters/*": true, "/clusters/**": true, "/clusters/blue/**": true, "/**": true, "/**/blue": true, "/*/bl?e": true, "/clusters/[ab]lue": true,
		"/": false, "/*": false, "/clusters": false, "/clusters/blu": false, "/clusters/blue/*": false, "/clusters/green/**": false,
	} {
		w := open(t, "", bound(secretsRule(pattern, "describeSecret", "readValue")), profile.Profile{})
		if _, answer := w.list(w.token("bound"), ""); (len(answer["secrets"].([]any)) == 2) != fits {
			t.Errorf("%q gives %v", pattern, answer)
		}
	}
}

func TestASeedThatSaysWhatNoRoleCanIsRefused(t *testing.T) {
	policy := seed()
	policy.Projects[0].Policies = []infisical.Policy{{Environment: "prod", SecretPath: "/{a,b}"}}
	for want, seed := range map[string]infisical.Seed{
		`on "secret"`:           bound(infisical.Permission{Subject: "secret", Actions: []string{"read"}}),
		`has the action "list"`: bound(secretsRule("/", "list")),
		`/{blue,green}`:         bound(secretsRule("/{blue,green}", "read")),
		`/{a,b}`:                policy,
	} {
		if _, err := infisical.Open("", seed, profile.Profile{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAChangeUnderAPolicyIsKeptAsARequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "infisical.json")
	held := seed()
	held.Projects[0].Policies = []infisical.Policy{{Environment: "prod"}}
	w := open(t, file, held, profile.Profile{})
	token := w.token("writer")
	for method, name := range map[string]string{"POST": "NEW", "PATCH": "GITOPS_TOKEN", "DELETE": "GITOPS_URL"} {
		status, answer := w.change(method, token, name)
		approval, _ := answer["approval"].(map[string]any)
		if status != http.StatusOK || approval["status"] != "open" || approval["hasMerged"] != false || answer["secret"] != nil {
			t.Errorf("%s: %d %v", method, status, answer)
		}
	}
	status, answer := w.change("POST", token, "GITOPS_TOKEN")
	told(t, status, answer, http.StatusBadRequest, "BadRequest", "Secret already exists: 'GITOPS_TOKEN' in path '"+folder+"' of environment 'prod'")
	status, answer = w.change("PATCH", token, "NOTHING")
	told(t, status, answer, http.StatusNotFound, "NotFound", "Secret does not exist: NOTHING")
	status, answer = w.change("POST", w.token("reader"), "OTHER")
	told(t, status, answer, http.StatusForbidden, "PermissionDenied", "You are not allowed to create on secrets")
	if value, _ := w.Get(slug, "prod", folder, "GITOPS_TOKEN"); value != "tok" || w.Waiting(slug) != 3 {
		t.Errorf("the value is %q, and %d wait", value, w.Waiting(slug))
	}

	again := open(t, file, held, profile.Profile{})
	if err := again.Put(slug, "prod", folder, "NEW", "somebody's"); err != nil {
		t.Fatal(err)
	}
	if err := again.Approve(slug); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"NEW": "somebody's", "GITOPS_TOKEN": "new", "GITOPS_URL": ""} {
		if value, _ := again.Get(slug, "prod", folder, name); value != want {
			t.Errorf("after the approval %s is %q", name, value)
		}
	}
	if again.Waiting(slug) != 0 {
		t.Errorf("%d still wait", again.Waiting(slug))
	}
}

func TestTheNearestPolicySaysWhoGoesByIt(t *testing.T) {
	whole, below, exact := infisical.Policy{Environment: "prod"}, infisical.Policy{Environment: "prod", SecretPath: "/clusters/**"}, infisical.Policy{Environment: "prod", SecretPath: folder}
	bypass := func(p infisical.Policy) infisical.Policy {
		p.BypassForMachineIdentities = true
		return p
	}
	for name, test := range map[string]struct {
		policies []infisical.Policy
		held     bool
	}{
		"none":                     {nil, false},
		"another environment":      {[]infisical.Policy{{Environment: "dev"}}, false},
		"another path":             {[]infisical.Policy{{Environment: "prod", SecretPath: "/shared"}}, false},
		"the whole environment":    {[]infisical.Policy{whole}, true},
		"identities go by it":      {[]infisical.Policy{bypass(whole)}, false},
		"a glob before the whole":  {[]infisical.Policy{bypass(whole), below}, true},
		"the path before a glob":   {[]infisical.Policy{below, bypass(exact), whole}, false},
		"and the other way round":  {[]infisical.Policy{bypass(below), exact, bypass(whole)}, true},
		"the same, in other order": {[]infisical.Policy{exact, bypass(whole), bypass(below)}, true},
	} {
		held := seed()
		held.Projects[0].Policies = test.policies
		w := open(t, "", held, profile.Profile{})
		if status, answer := w.change("POST", w.token("writer"), "NEW"); status != http.StatusOK || (answer["approval"] != nil) != test.held {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	w := open(t, "", seed(), profile.Profile{Faults: profile.Faults{profile.InfisicalApproval: "/clusters/*"}})
	if _, answer := w.change("POST", w.token("writer"), "NEW"); answer["approval"] == nil {
		t.Errorf("with the fault: %v", answer)
	}
}

// A world.yaml that castle wrote has an empty list of rules, where one that was written by hand has none.
func TestAnIdentityWithoutRulesMayDoEverything(t *testing.T) {
	w := open(t, "", bound([]infisical.Permission{}...), profile.Profile{})
	if status, answer := w.get(w.token("bound"), "GITOPS_TOKEN", ""); status != http.StatusOK {
		t.Errorf("it may not read a secret: %d %v", status, answer)
	}
}
