package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/tell"
	"tazlab.net/castle/ci/test/waittest"
)

// TestACRDThatAnAPIServerLeftLyingIsNudged: a real API server, which would see to it five minutes later.
func TestACRDThatAnAPIServerLeftLyingIsNudged(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	const lying, well = "ipaddresspools.metallb.io", "l2advertisements.metallb.io"
	get := func(name string) *unstructured.Unstructured {
		t.Helper()
		definition, err := server.Client().Resource(CRDs).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return definition
	}
	untouched := get(well).GetResourceVersion()
	tell.Fault(t, "the API server ended between a CRD's accepted names and its establishment")
	server.StopAPI()
	server.Unestablish(lying)
	server.StartAPI()

	client := connect(t, server)
	looks := waittest.Begin(t, client.Objects(CRDs, "", Established, lying))
	client.NudgePatience = 2 * time.Second
	wait := waittest.Begin(t, client.Definitions(lying, well))
	wait.Sees("1 of 2 ready; " + lying + ": Established is False: Installing: the initial names have been accepted")
	if took := wait.Opens(); took < time.Second || took > 10*time.Second {
		t.Errorf("it opened after %s", took)
	}
	looks.Opens()
	if _, is := get(lying).GetAnnotations()[nudged]; is {
		t.Error("the annotation stays")
	}
	if get(well).GetResourceVersion() != untouched {
		t.Error("a CRD that is well was changed")
	}
}

// TestANudgeLeavesNothingBehindWhereTheWaitEndsAtIt: a CRD is established as soon as the first of the two patches is stored.
func TestANudgeLeavesNothingBehindWhereTheWaitEndsAtIt(t *testing.T) {
	for name, status := range map[string]int{"answered": http.StatusOK, "stored without an answer": http.StatusBadGateway} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var patches []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cancel()
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				patches = append(patches, string(body))
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprint(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"}}`)
			}))
			defer server.Close()
			client, err := newClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = (&nudge{client: client}).change(ctx, "a.b")
			if (err == nil) != (status == http.StatusOK) {
				t.Errorf("an answer of %d: %v", status, err)
			}
			if last := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, nudged); len(patches) != 2 || patches[0] == last || patches[1] != last {
				t.Errorf("the patches were %q", patches)
			}
		})
	}
}

// definition is a CRD with the status of its conditions, or without one where it is "".
func definition(accepted, established string) *unstructured.Unstructured {
	var conditions []any
	for kind, status := range map[string]string{"NamesAccepted": accepted, "Established": established} {
		if status != "" {
			conditions = append(conditions, map[string]any{"type": kind, "status": status})
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a.b"}, "status": map[string]any{"conditions": conditions}}}
}

func TestOnlyACRDWithAcceptedNamesIsNudgedAndNotTooOften(t *testing.T) {
	n := &nudge{client: &Client{NudgePatience: time.Hour}, lying: map[string]time.Time{}, times: map[string]int{}, failed: map[string]error{}}
	ago := func(since time.Duration) {
		if _, is := n.lying["a.b"]; is {
			n.lying["a.b"] = time.Now().Add(-since)
		}
	}
	for _, c := range []struct {
		accepted, established string
		since                 time.Duration
		due                   bool
	}{
		{"True", "False", time.Minute, false},
		{"True", "False", 2 * time.Hour, true},
		{"True", "False", time.Minute, false}, // since it was nudged
		{"True", "", 2 * time.Hour, true},
		{"False", "False", 2 * time.Hour, false},
		{"", "", 2 * time.Hour, false},
		{"True", "True", 2 * time.Hour, false},
	} {
		if _, ok := n.established(definition(c.accepted, c.established)); ok != (c.established == "True") {
			t.Errorf("%+v: it is taken for established: %t", c, ok)
		}
		ago(c.since)
		if due := len(n.due()) > 0; due != c.due {
			t.Errorf("%+v: nudged: %t", c, due)
		}
	}
	if seen, _ := n.established(definition("True", "False")); !strings.HasSuffix(seen, "; the API server was nudged 2 times") {
		t.Errorf("what is seen last: %s", seen)
	}
	n.failed["a.b"] = errors.New("not now")
	if seen, _ := n.established(definition("True", "False")); !strings.HasSuffix(seen, "; it cannot be nudged: not now") {
		t.Errorf("what is seen last: %s", seen)
	}
}
