package secrets

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/test/tell"
)

// reading is a role that may read these folders.
func reading(folders ...string) []infisical.Permission {
	var role []infisical.Permission
	for _, folder := range folders {
		role = append(role, infisical.Reading("prod", folder))
	}
	return role
}

func TestAnIdentityInTheClusterThatSeesTooMuchIsRefused(t *testing.T) {
	for name, story := range map[string]struct {
		spoil func(*world)
		want  []string
	}{
		"nothing is wrong": {func(*world) {}, nil},
		"the PKI": {func(w *world) {
			w.remote[TalosSecrets] = canary(t)
			w.readers[InfisicalWorkloadsClientID] = reading(testPath, testWorkloadsPath)
		}, []string{"the machine identity of INFISICAL_WORKLOADS_CLIENT_ID can see TALOS_SECRETS in Infisical", "path /clusters/blue: in Infisical bind its role to secretPath /clusters/blue/workloads"}},
		"where the PKI will be": {func(w *world) { w.readers[InfisicalFluxClientID] = reading(testPath, testFluxPath) },
			[]string{"INFISICAL_FLUX_CLIENT_ID can see whether TALOS_SECRETS is there in Infisical", "bind its role to secretPath /clusters/blue/flux"}},
		"Flux's secrets, by a store of the workloads": {func(w *world) { w.readers[InfisicalWorkloadsClientID] = reading(testPath + "/**") },
			[]string{"INFISICAL_WORKLOADS_CLIENT_ID can see GITOPS_TOKEN, GITOPS_USERNAME, SOPS_AGE_KEY in Infisical", "path /clusters/blue/flux"}},
		"names, and no values": {func(w *world) {
			w.remote[TalosSecrets] = canary(t)
			w.readers[InfisicalFluxClientID] = append(reading(testFluxPath), mayIn(testPath, "describeSecret")...)
		}, []string{"INFISICAL_FLUX_CLIENT_ID can see names of secrets in Infisical"}},
		"castle's own": {func(w *world) {
			w.bootstrap[InfisicalFluxClientID], w.bootstrap[InfisicalFluxClientSecret] = w.bootstrap[InfisicalClientID], w.bootstrap[InfisicalClientSecret]
		}, []string{"INFISICAL_FLUX_CLIENT_ID is the client id of INFISICAL_CLIENT_ID as well: in Infisical make a machine identity with universal auth"}},
		"one for both": {func(w *world) {
			w.bootstrap[InfisicalWorkloadsClientID], w.bootstrap[InfisicalWorkloadsClientSecret] = w.bootstrap[InfisicalFluxClientID], w.bootstrap[InfisicalFluxClientSecret]
		}, []string{"INFISICAL_WORKLOADS_CLIENT_ID is the client id of INFISICAL_FLUX_CLIENT_ID as well"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.readers = map[string][]infisical.Permission{}
				story.spoil(w)
			})
			w.in.Create = true
			_, err := w.resolve()
			if (err != nil) != (story.want != nil) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				return
			}
			tell.Observation(t, 0, "%v", err)
			w.clean("the error", err.Error())
			for _, want := range story.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not said:\n%v", want, err)
				}
			}
			if w.asked("POST /api/v3") != 0 || w.asked("POST /api/v1/folders") != 0 {
				t.Errorf("something was written: %q", w.calls)
			}
		})
	}
}

func TestCreateAsksForTheIdentitiesOfTheClusterAndNobodyElseDoes(t *testing.T) {
	w := newWorld(t, func(w *world) {
		for _, name := range []string{InfisicalFluxClientID, InfisicalFluxClientSecret, InfisicalWorkloadsClientID, InfisicalWorkloadsClientSecret} {
			delete(w.bootstrap, name)
		}
	})
	w.resolved()
	w.in.Create = true
	err := w.fails()
	const how = "in Infisical make a machine identity with universal auth, whose role has \"Describe Secret\" and \"Read Value\" (describeSecret, readValue) " +
		"on secrets in environment prod, path /clusters/blue/%s, and nothing else; then set INFISICAL_%s_CLIENT_ID and INFISICAL_%s_CLIENT_SECRET with \"sops edit secrets.sops.yaml\""
	for folder, name := range map[string]string{"flux": "FLUX", "workloads": "WORKLOADS"} {
		for _, want := range []string{"INFISICAL_" + name + "_CLIENT_ID is missing in ", "INFISICAL_" + name + "_CLIENT_SECRET is missing in ",
			strings.NewReplacer("blue/%s", "blue/"+folder, "%s", name).Replace(how)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not said:\n%v", want, err)
			}
		}
	}
}

// older has a world's secrets all in castle's own folder, as they were before there were others.
func older(w *world) {
	w.remote[TalosSecrets] = canary(w.t)
	w.folders = map[string]map[string]string{testPath: {"GRAFANA_ADMIN_PASSWORD": canary(w.t), AdminKubeconfig: canary(w.t)}}
	for name, value := range w.remote {
		w.folders[testPath][name] = value
	}
	clear(w.remote)
}

// holds is what a folder of Infisical holds.
func (w *world) holds(folder string, names ...string) map[string]string {
	held := map[string]string{}
	for _, name := range names {
		if value, has := w.infisical.Get(testProject, "prod", folder, name); has {
			held[name] = value
		}
	}
	return held
}

func TestTheSecretsOfAnOlderClusterAreCopiedToWhereItsIdentitiesReadThem(t *testing.T) {
	w := newWorld(t, older)
	w.in.Create = true
	values := w.resolved()
	if token, _ := values.Get(GitOpsToken); token != w.folders[testPath][GitOpsToken] {
		t.Error("what is not copied yet is not read from where it was")
	}
	copied, err := values.Share(t.Context(), w.cluster, w.in)
	if err != nil || !slices.Equal(copied, []string{"GRAFANA_ADMIN_PASSWORD"}) {
		t.Fatalf("copied %v, %v", copied, err)
	}
	all := []string{GitOpsToken, GitOpsUsername, FluxAgeKey, TalosSecrets, AdminKubeconfig, "GRAFANA_ADMIN_PASSWORD", Proof}
	if held := w.holds(testFluxPath, all...); len(held) != 3 || held[GitOpsToken] != w.folders[testPath][GitOpsToken] {
		t.Errorf("Flux's folder holds %d", len(held))
	}
	if held := w.holds(testWorkloadsPath, all...); len(held) != 2 || held[Proof] == "" || held["GRAFANA_ADMIN_PASSWORD"] == "" {
		t.Errorf("the workloads' folder holds %d", len(held))
	}

	// From now on only the new folder counts, and what somebody adds to castle's own stays there.
	if err := errors.Join(w.infisical.Put(testProject, "prod", testFluxPath, GitOpsToken, "newer"),
		w.infisical.Put(testProject, "prod", testPath, "OF_NO_WORKLOAD", "any")); err != nil {
		t.Fatal(err)
	}
	again := w.resolved()
	if token, _ := again.Get(GitOpsToken); token != "newer" {
		t.Errorf("the token is %q", token)
	}
	if copied, err := again.Share(t.Context(), w.cluster, w.in); err != nil || copied != nil {
		t.Errorf("copied again: %v, %v", copied, err)
	}
	if held := w.holds(testWorkloadsPath, "OF_NO_WORKLOAD"); len(held) != 0 {
		t.Error("what was added to castle's own folder is in the cluster's reach")
	}
	if held := w.holds(testFluxPath, GitOpsToken); held[GitOpsToken] != "newer" {
		t.Error("a newer token was overwritten")
	}
}

func TestACopyThatWasInterruptedIsCompleted(t *testing.T) {
	for stop := range 7 {
		w := newWorld(t, func(w *world) {
			older(w)
			w.folders[testWorkloadsPath] = map[string]string{"GRAFANA_ADMIN_PASSWORD": "newer"}
		})
		w.in.Create = true
		writes := 0
		w.guard(func(response http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/login") {
				return false
			}
			writes++
			if writes <= stop {
				return false
			}
			http.Error(response, `{"message":"gone"}`, http.StatusBadRequest)
			return true
		})
		_, interrupted := w.resolved().Share(t.Context(), w.cluster, w.in)
		w.guard(nil)
		if _, err := w.resolved().Share(t.Context(), w.cluster, w.in); err != nil {
			t.Fatalf("after %d writes (%v): %v", stop, interrupted, err)
		}
		if held := w.holds(testWorkloadsPath, "GRAFANA_ADMIN_PASSWORD"); held["GRAFANA_ADMIN_PASSWORD"] != "newer" {
			t.Errorf("after %d writes a value that was there is another", stop)
		}
		if held := w.holds(testFluxPath, GitOpsUsername, GitOpsToken, FluxAgeKey); len(held) != 3 {
			t.Errorf("after %d writes Flux's folder holds %d", stop, len(held))
		}
	}
}

func TestANewClusterCopiesNothingToItsWorkloads(t *testing.T) {
	w := newWorld(t, func(w *world) { w.folders = map[string]map[string]string{testPath: {"OF_NO_WORKLOAD": "any"}} })
	w.in.Create = true
	if copied, err := w.resolved().Share(t.Context(), w.cluster, w.in); err != nil || len(copied) != 0 {
		t.Errorf("copied %v, %v", copied, err)
	}
	if held := w.holds(testWorkloadsPath, "OF_NO_WORKLOAD", Proof); len(held) != 1 {
		t.Errorf("the workloads' folder holds %v", held)
	}
}

func TestAnIdentityThatDoesNotReadItsFolderIsRefusedBeforeTheCluster(t *testing.T) {
	w := newWorld(t, func(w *world) {
		older(w)
		w.readers = map[string][]infisical.Permission{InfisicalFluxClientID: reading("/elsewhere")}
	})
	w.in.Create = true
	_, err := w.resolve()
	if err == nil || !strings.Contains(err.Error(), "the machine identity of INFISICAL_FLUX_CLIENT_ID cannot read GITOPS_USERNAME in Infisical") ||
		!strings.Contains(err.Error(), "make it a member of the project, with") || !strings.Contains(err.Error(), "path /clusters/blue/flux") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutThePermissionToMakeFoldersTheRefusalNamesIt(t *testing.T) {
	w := newWorld(t, func(w *world) {
		older(w)
		w.role = mayIn(testPath+"/**", everything...)
	})
	_, err := w.resolved().Share(t.Context(), w.cluster, w.in)
	if err == nil || !strings.Contains(err.Error(), "path /clusters/blue/workloads: cannot make the folder: 403 Forbidden") ||
		!strings.Contains(err.Error(), `make this folder in Infisical, or give the machine identity of INFISICAL_CLIENT_ID "Create" on Secret Folders`) {
		t.Errorf("got %v", err)
	}
}

func TestASandboxThatIsOlderThanTheIdentitiesHasDerivedOnes(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.cluster.Platform = config.PlatformSandbox
		for name, value := range SandboxReaders(w.bootstrap[InfisicalClientID], w.bootstrap[InfisicalClientSecret]) {
			w.bootstrap[name] = value // the simulated Infisical knows them
		}
	})
	w.in.Create = true
	local := map[string]string{InfisicalClientID: w.bootstrap[InfisicalClientID], InfisicalClientSecret: w.bootstrap[InfisicalClientSecret]}
	addSandboxReaders(w.cluster, local)
	if len(local) != 6 || local[InfisicalFluxClientID] == local[InfisicalWorkloadsClientID] {
		t.Errorf("derived are %d", len(local))
	}
	if complete, err := Readers(t.Context(), w.cluster, local, w.in); err != nil || complete {
		t.Error(complete, err)
	}
	own := map[string]string{InfisicalClientID: "a", InfisicalClientSecret: "b", InfisicalFluxClientID: "c"}
	addSandboxReaders(w.cluster, own)
	if len(own) != 3 {
		t.Error("those of the SOPS file are mixed with derived ones")
	}
}
