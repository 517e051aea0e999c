package gates

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// The probes' names never collide with a real object: nothing of a dry run is stored, and generateName leaves the
// rest to the API server.
const probeName = "castle-probe-"

// metallbProbes show that MetalLB validates pools and advertisements. The address is of the block that RFC 5737 keeps for
// documentation, so that it overlaps with no pool; "none" is no address, which only the webhook knows.
func metallbProbes(namespace string) []probe {
	pool := func(address string) *unstructured.Unstructured {
		return probeOf("metallb.io/v1beta1", "IPAddressPool", namespace, map[string]any{"addresses": []any{address}, "autoAssign": false})
	}
	return []probe{
		{addressPools, pool("none"), "ipaddresspoolvalidationwebhook.metallb.io"},
		{addressPools, pool("192.0.2.0/24"), ""},
		{advertisements, probeOf("metallb.io/v1beta1", "L2Advertisement", namespace, map[string]any{}), ""},
	}
}

// externalSecretsProbes show that External Secrets Operator validates secrets and stores, which are two registrations,
// each with a certificate of its own. A secret without data and a fake store's entry without a key are what only the
// webhook refuses.
func externalSecretsProbes(namespace string) []probe {
	secret := func(spec map[string]any) *unstructured.Unstructured {
		spec["secretStoreRef"] = map[string]any{"name": "castle-probe", "kind": "ClusterSecretStore"}
		return probeOf("external-secrets.io/v1", "ExternalSecret", namespace, spec)
	}
	entry := map[string]any{"secretKey": "probe", "remoteRef": map[string]any{"key": "probe"}}
	store := func(key string) *unstructured.Unstructured {
		return probeOf("external-secrets.io/v1", "ClusterSecretStore", "", map[string]any{
			"provider": map[string]any{"fake": map[string]any{"data": []any{map[string]any{"key": key, "value": "probe"}}}},
		})
	}
	return []probe{
		{clusterStores, store(""), "validate.clustersecretstore.external-secrets.io"},
		{clusterStores, store("probe"), ""},
		{externalSecrets, secret(map[string]any{}), "validate.externalsecret.external-secrets.io"},
		{externalSecrets, secret(map[string]any{"data": []any{entry}}), ""},
	}
}

func probeOf(apiVersion, kind, namespace string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   map[string]any{"generateName": probeName},
		"spec":       spec,
	}}
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	return object
}
