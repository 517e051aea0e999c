package gates

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// A probe proves something only when the API itself lets it through, and the webhook of the release does not.
func TestOnlyTheWebhooksRefuseTheProbes(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	server.InstallCRDs("external-secrets", "_externalsecrets", "_clustersecretstores")
	configMapIn := func(namespace string) {
		server.Put(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: here, namespace: "+namespace+"}}")
	}
	configMapIn("metallb-system")
	configMapIn("external-secrets")
	client := connect(t, server)
	for _, sent := range append(metallbProbes("metallb-system"), externalSecretsProbes("external-secrets")...) {
		result := webhook{Kube: client, Probes: []probe{sent}}.callThrough(t.Context())
		want := "answers"
		if sent.RefusedBy != "" {
			want = "webhook " + sent.RefusedBy + " is not called yet"
		}
		if result.Seen != want {
			t.Errorf("%s: %q, want %q", sent.Object.GetKind(), result.Seen, want)
		}
	}
}

func TestTheEngineGateHoldsUntilBothWebhooksAnswer(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("external-secrets", "_externalsecrets", "_clustersecretstores")
	putSlice(server, "external-secrets", "external-secrets-webhook", "true")
	gate := watchGate(t, "engine-webhook", Env{Kube: connect(t, server)}, time.Minute)
	gate.Sees("webhook validate.clustersecretstore.external-secrets.io is not called yet")
	stores := server.Register("validate.clustersecretstore.external-secrets.io", clusterStores, func(store *unstructured.Unstructured) string {
		data, _, _ := unstructured.NestedSlice(store.Object, "spec", "provider", "fake", "data")
		if data[0].(map[string]any)["key"] == "" {
			return "missing key"
		}
		return ""
	})
	stores.Serve()
	gate.Sees("webhook validate.externalsecret.external-secrets.io is not called yet")
	secrets := server.Register("validate.externalsecret.external-secrets.io", externalSecrets, func(secret *unstructured.Unstructured) string {
		if data, _, _ := unstructured.NestedSlice(secret.Object, "spec", "data"); len(data) == 0 {
			return "either data or dataFrom should be specified"
		}
		return ""
	})
	gate.Sees("connect: connection refused")
	secrets.Serve()
	gate.Opens()
}

func TestAnExternalSecretOfAnOlderGenerationIsNotSynced(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("external-secrets", "_externalsecrets", "_clustersecretstores")
	gate := watchGate(t, "engine", Env{Kube: connect(t, server), Cluster: &config.Cluster{Secrets: config.Secrets{Infisical: config.Infisical{URL: "https://infisical.test"}}}}, time.Minute)
	gate.Sees("does not exist yet")
	store := func(ready string) {
		for _, name := range []string{"infisical", "infisical-flux"} {
			server.Put(clusterStores, `{apiVersion: external-secrets.io/v1, kind: ClusterSecretStore, metadata: {name: `+name+`},
				spec: {provider: {fake: {data: [{key: a, value: b}]}}}, status: {conditions: [{type: Ready, status: "`+ready+`", reason: InvalidProviderConfig, message: "401 from Infisical"}]}}`)
		}
	}
	store("False")
	gate.Sees("Ready is False: InvalidProviderConfig: 401 from Infisical")
	store("True")
	secret := func(key, version string) {
		server.Put(externalSecrets, `{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: castle-proof, namespace: external-secrets},
			spec: {secretStoreRef: {name: infisical, kind: ClusterSecretStore}, data: [{secretKey: a, remoteRef: {key: `+key+`}}]},
			status: {syncedResourceVersion: "`+version+`", conditions: [{type: Ready, status: "True", reason: SecretSynced}]}}`)
	}
	secret("a", "0-x")
	gate.Sees("synced before its generation 1")
	gate.StaysShut(200 * time.Millisecond)
	secret("b", "2-x")
	gate.Opens()
}

func TestTheStorageGateWantsTheDefaultClassAndManagersAndDriversThatRun(t *testing.T) {
	server := shared.Server(t)
	client := connect(t, server)
	conditions := storage(Env{Kube: client, Cluster: sandbox(), LookOnly: true})
	gate := begin(t, time.Minute, conditions...)
	class := func(annotations string) {
		server.Put(kube.StorageClasses, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: longhorn"+annotations+"}, provisioner: driver.longhorn.io}")
	}
	class("")
	gate.Sees("exists, but is not the default")
	class(`, annotations: {storageclass.kubernetes.io/is-default-class: "true"}`)
	daemons := func(name, status string) {
		server.Put(kube.DaemonSets, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: `+name+`, namespace: longhorn-system},
			spec: {selector: {matchLabels: {app: m}}, template: {metadata: {labels: {app: m}}, spec: {containers: [{name: m, image: m}]}}},
			status: {observedGeneration: 1, currentNumberScheduled: 0, numberMisscheduled: 0, `+status+`}}`)
	}
	const one, two = "desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1, numberReady: 1",
		"desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 2"
	daemons("longhorn-manager", "desiredNumberScheduled: 0, numberReady: 0")
	gate.Sees("scheduled on no node yet")
	daemons("longhorn-manager", one)
	gate.Sees("Available: 1/2")
	server.Put(kube.CSIDrivers, "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: driver.longhorn.io}, spec: {}}")
	daemons("longhorn-manager", two)
	daemons("longhorn-csi-plugin", one)
	gate.StaysShut(200 * time.Millisecond)
	daemons("longhorn-csi-plugin", two)
	gate.Opens()
}

func TestAPoolIsAcceptedWhenMetalLBCountsIt(t *testing.T) {
	server := shared.Server(t)
	server.InstallCRDs("metallb", "ipaddresspools", "l2advertisements")
	conditions := networking(Env{Kube: connect(t, server), Cluster: sandbox()})
	gate := begin(t, time.Minute, conditions[0], conditions[1])
	put := func(status string) {
		server.Put(addressPools, "{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: castle, namespace: metallb-system}, spec: {addresses: [192.0.2.0/24]}"+status+"}")
	}
	put("")
	server.Put(advertisements, "{apiVersion: metallb.io/v1beta1, kind: L2Advertisement, metadata: {name: castle, namespace: metallb-system}, spec: {}}")
	gate.Sees("MetalLB has not taken it up yet")
	put(", status: {assignedIPv4: 0, assignedIPv6: 0, availableIPv4: 256, availableIPv6: 0}")
	gate.Opens()
}

func TestFluxsControllersAreAllWaitedFor(t *testing.T) {
	server := shared.Server(t)
	conditions := gitopsControllers(Env{Kube: connect(t, server)})
	gate := begin(t, time.Minute, conditions[0], conditions[1])
	server.InstallCRDs("flux-source", "gitrepositories", "helmrepositories")
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.InstallCRDs("flux-helm", "helmreleases")
	gate.Sees("0 of 4 ready; source-controller: does not exist yet")
	for _, name := range []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"} {
		gate.StaysShut(50 * time.Millisecond)
		server.Put(kube.Deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: `+name+`, namespace: flux-system},
			spec: {selector: {matchLabels: {app: c}}, template: {metadata: {labels: {app: c}}, spec: {containers: [{name: c, image: c}]}}},
			status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`)
	}
	gate.Opens()
}

func TestAFailedCallIsToldByItsCause(t *testing.T) {
	const prefix = `Internal error occurred: failed calling webhook "w.metallb.io": failed to call webhook: `
	for message, want := range map[string]string{
		prefix + `Post "https://s.ns.svc:443/v?timeout=10s": dial tcp 10.96.0.12:443: connect: connection refused`:                             "dial tcp 10.96.0.12:443: connect: connection refused",
		prefix + `Post "https://s.ns.svc:443/v?timeout=10s": no endpoints available for service "s"`:                                           `no endpoints available for service "s"`,
		prefix + `Post "https://s.ns.svc:443/v?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`: "tls: failed to verify certificate: x509: certificate signed by unknown authority",
		"namespaces \"metallb-system\" not found": "namespaces \"metallb-system\" not found",
	} {
		if got := lastPart(errorText(message)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestAMessageBecomesOneShortLine(t *testing.T) {
	got := shorten("a\n b\t" + strings.Repeat("é", seenLimit))
	if len(got) > seenLimit || !strings.HasPrefix(got, "a b é") || !strings.HasSuffix(got, "é...") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}
