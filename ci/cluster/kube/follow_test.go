package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/tell"
	"tazlab.net/castle/ci/test/waittest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestAWaitSurvivesARestartOfTheAPI(t *testing.T) {
	server := kubetest.Start(t)
	wait := waittest.Begin(t, connect(t, server).Objects(configMaps, "there", Present, "late"))
	wait.Sees("does not exist yet")
	server.StopAPI()
	wait.Sees("cannot read configmaps: ")
	wait.Sees("connect: connection refused")
	server.StartAPI()
	server.Put(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: there}}")
	if took := wait.Opens(); took > 10*time.Second {
		t.Errorf("noticed after %s", took)
	}
}

func TestAKindThatIsNotDefinedYetIsWaitedFor(t *testing.T) {
	server := shared.Server(t)
	profiles := schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "bfdprofiles"}
	tell.Fault(t, "neither the object nor its kind is there")
	wait := waittest.Begin(t, connect(t, server).Objects(profiles, "metallb-system", Present, "x"))
	wait.Sees("CRD bfdprofiles.metallb.io does not exist yet")
	server.InstallCRDs("metallb", "bfdprofiles")
	wait.Sees("does not exist yet")
	server.Put(profiles, "{apiVersion: metallb.io/v1beta1, kind: BFDProfile, metadata: {name: x, namespace: metallb-system}, spec: {}}")
	wait.Opens()
}
