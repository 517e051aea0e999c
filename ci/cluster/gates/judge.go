package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// present passes every object.
func present(*unstructured.Unstructured) (string, bool) { return "exists", true }

// current asks kstatus: the newest generation was observed and is rolled out.
func current(object *unstructured.Unstructured) (string, bool) {
	result, err := status.Compute(object)
	if err != nil {
		return err.Error(), false
	}
	return result.Message, result.Status == status.CurrentStatus
}

// available tests a Deployment, by kstatus: its newest generation is observed, all its pods are of it and available, and none is
// left of an older one. Pods that are on their way out are not waited for.
func available(deployment *unstructured.Unstructured) (string, bool) {
	if seen, ok := current(deployment); !ok {
		return seen, false
	}
	wanted, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !found {
		wanted = 1 // the API's default
	}
	if wanted == 0 {
		return "it is scaled to 0", false
	}
	return fmt.Sprintf("%d of %d available", wanted, wanted), true
}

// runs tests a Deployment as available does, and that its pods run the image; an empty image stands for any.
func runs(image string) Test {
	return func(deployment *unstructured.Unstructured) (string, bool) {
		images := imagesOf(deployment)
		if image != "" && !hasImage(images, image) {
			return fmt.Sprintf("its image is %s, not %s", strings.Join(images, ", "), image), false
		}
		return available(deployment)
	}
}

// hasImage looks for an image under any of the names that a container runtime takes for the same one.
func hasImage(images []string, image string) bool {
	wanted := canonical(image)
	return slices.ContainsFunc(images, func(has string) bool { return has == image || canonical(has) == wanted })
}

// canonical is an image's full name, with the registry that a short one leaves out; what is no name stays as it is.
func canonical(image string) string {
	reference, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return reference.Name()
}

func imagesOf(workload *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	var images []string
	for _, container := range containers {
		if container, ok := container.(map[string]any); ok {
			image, _ := container["image"].(string)
			images = append(images, image)
		}
	}
	return images
}

// onEveryNode tests a DaemonSet: available wherever it shall run, which is at least one node.
func onEveryNode(daemonSet *unstructured.Unstructured) (string, bool) {
	seen, ok := current(daemonSet)
	desired, _, _ := unstructured.NestedInt64(daemonSet.Object, "status", "desiredNumberScheduled")
	if !ok {
		return seen, false
	}
	if desired == 0 {
		return "scheduled on no node yet", false
	}
	return fmt.Sprintf("available on %d nodes", desired), true
}

// established tests a CRD: its kind can be used.
func established(definition *unstructured.Unstructured) (string, bool) {
	return hasCondition(definition, "Established")
}

// nodeReady tests a Node.
func nodeReady(node *unstructured.Unstructured) (string, bool) {
	return hasCondition(node, "Ready")
}

// conditionReady tests an object of a controller that sets a Ready condition. Where the controller records what it has
// observed, this is the newest generation. An object without conditions is not ready: its controller has not seen it.
func conditionReady(object *unstructured.Unstructured) (string, bool) {
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		return "suspended; flux resume lets it go on", false
	}
	seen, ready := hasCondition(object, "Ready")
	if behind, ok := current(object); ready && !ok {
		return behind, false
	}
	return seen, ready
}

// synced tests an ExternalSecret: its newest generation stands in the Secret. The controller keeps it as the first part
// of syncedResourceVersion ("2-<hash>").
func synced(secret *unstructured.Unstructured) (string, bool) {
	seen, ok := conditionReady(secret)
	if !ok {
		return seen, false
	}
	version, _, _ := unstructured.NestedString(secret.Object, "status", "syncedResourceVersion")
	if generation, _, _ := strings.Cut(version, "-"); generation != fmt.Sprint(secret.GetGeneration()) {
		return fmt.Sprintf("synced before its generation %d", secret.GetGeneration()), false
	}
	return seen, true
}

// defaultClass tests a StorageClass.
func defaultClass(class *unstructured.Unstructured) (string, bool) {
	const annotation = "storageclass.kubernetes.io/is-default-class"
	if class.GetAnnotations()[annotation] != "true" {
		return "exists, but is not the default (no annotation " + annotation + "=true)", false
	}
	return "is the default", true
}

// accepted tests an IPAddressPool: MetalLB has counted its addresses.
func accepted(pool *unstructured.Unstructured) (string, bool) {
	var free, used int64
	for _, family := range []string{"IPv4", "IPv6"} {
		f, _, _ := unstructured.NestedInt64(pool.Object, "status", "available"+family)
		u, _, _ := unstructured.NestedInt64(pool.Object, "status", "assigned"+family)
		free, used = free+f, used+u
	}
	if free+used == 0 {
		return "MetalLB has not taken it up yet", false
	}
	return fmt.Sprintf("%d addresses free, %d in use", free, used), true
}

// hasCondition looks for a condition with status True, and says else what its controller says.
func hasCondition(object *unstructured.Unstructured, kind string) (string, bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		condition, ok := condition.(map[string]any)
		if !ok || condition["type"] != kind {
			continue
		}
		if condition["status"] == "True" {
			return kind, true
		}
		seen := fmt.Sprintf("%s is %v", kind, condition["status"])
		for _, field := range []string{"reason", "message"} {
			if text, _ := condition[field].(string); text != "" {
				seen += ": " + text
			}
		}
		return seen, false
	}
	return "not " + kind + " yet", false
}
