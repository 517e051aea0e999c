//go:build linux

package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodFindsTheImageThatItsNodePulledBeforeThereWasACluster(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	if err := w.Pull(t.Context(), wk1.Name, "early:1"); err != nil {
		t.Fatal(err)
	}
	client := w.start()
	for _, name := range []string{"early", "late"} {
		if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment(name, name+":1", 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.available(client, "default", name, 30*time.Second)
	}
	var pulls string
	w.eventually(5*time.Second, "a pull is told of", func(ctx context.Context) error {
		events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=Pulling"})
		if err != nil {
			return err
		}
		pulls = ""
		for _, event := range events.Items {
			pulls += event.Message + "\n"
		}
		if !strings.Contains(pulls, "late:1") {
			return errors.New("not yet")
		}
		return nil
	})
	if strings.Contains(pulls, "early:1") {
		t.Errorf("it is pulled again:\n%s", pulls)
	}
}
