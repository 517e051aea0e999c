package layers_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/test/kubetest"
)

// imagesAreListed compares what the layers have installed with what is pulled before they do.
func imagesAreListed(t *testing.T, server *kubetest.Server) {
	t.Helper()
	list, err := charts.Charts(terragrunt)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, chart := range list {
		for _, image := range chart.Images {
			if chart.Name != repositoryOnly && !chart.Later() {
				listed[image.Name] = image.Nodes
			}
		}
	}
	installed := map[string]string{}
	note := func(pod corev1.PodSpec, nodes string) {
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			images := []string{container.Image}
			for i, argument := range container.Args { // what it is told to start, on the nodes that it is on
				if strings.HasSuffix(argument, "-image") && i+1 < len(container.Args) {
					images = append(images, container.Args[i+1])
				}
			}
			for _, image := range images {
				if known := installed[image]; known == "" || known == charts.OnAny || nodes == charts.OnAll {
					installed[image] = nodes
				}
			}
		}
	}
	deployments, daemonSets := workloads(t, server)
	for _, deployment := range deployments {
		note(deployment.Spec.Template.Spec, charts.OnAny)
	}
	for _, daemonSet := range daemonSets {
		pod, nodes := daemonSet.Spec.Template.Spec, charts.OnWorkers
		if slices.ContainsFunc(pod.Tolerations, toleratesControlPlanes) {
			nodes = charts.OnAll
		}
		note(pod, nodes)
	}
	if !maps.Equal(installed, listed) {
		t.Errorf("the layers installed\n%v\nand %s lists\n%v", installed, charts.ChartsFile, listed)
	}
}

func toleratesControlPlanes(toleration corev1.Toleration) bool {
	return toleration.Operator == corev1.TolerationOpExists &&
		(toleration.Key == "" || toleration.Key == "node-role.kubernetes.io/control-plane")
}

// workloads are all that the layers have installed.
func workloads(t *testing.T, server *kubetest.Server) ([]appsv1.Deployment, []appsv1.DaemonSet) {
	t.Helper()
	client, err := newClient(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := client.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	daemonSets, err := client.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return deployments.Items, daemonSets.Items
}
