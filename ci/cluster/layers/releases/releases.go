// Package releases frees Helm releases that an interrupted run left in the middle of an operation. Helm takes such a record for a
// lock that another process holds, and refuses every further operation; castle's own lock says that there is no other process.
package releases

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// Record is one revision of a release, as Helm keeps it.
type Record struct {
	Revision int
	Status   string // "pending-install"
	Since    time.Time
}

// unfinished are the statuses that bear no further operation: the pending ones by pkg/action/upgrade.go of Helm v3.22, and
// "uninstalling" because an upgrade finds no deployed revision then.
var unfinished = []string{"pending-install", "pending-upgrade", "pending-rollback", "uninstalling"}

const failed = "failed"

// finished are the statuses of revisions that were deployed once.
var finished = []string{"deployed", "superseded"}

// Free removes the newest records of a release as long as they are unfinished, and returns them; those of a release that was never deployed go
// when they failed, too, so that it is installed anew. An upgrade of it would run the chart's hooks for one, and the job that Longhorn's chart
// begins an upgrade with needs what only an installation makes (templates/preupgrade-job.yaml of v1.11). The objects that the
// operation made stay, and the next one takes them up by the owner that Helm wrote on them; the last finished revision, where
// there is one, is what it starts from.
func Free(ctx context.Context, client *kube.Client, release layers.Release) ([]Record, error) {
	typed, err := kubernetes.NewForConfig(client.Config())
	if err != nil {
		return nil, err
	}
	secrets := typed.CoreV1().Secrets(release.Namespace)
	// The labels of pkg/storage/driver/secrets.go.
	var list *corev1.SecretList
	err = client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) (err error) {
		list, err = secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + release.Name})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the records of Helm release %s in %s: %w", release.Name, release.Namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return record(&b).Revision - record(&a).Revision })
	deployed := slices.ContainsFunc(list.Items, func(secret corev1.Secret) bool { return slices.Contains(finished, record(&secret).Status) })
	var freed []Record
	for _, secret := range list.Items {
		record := record(&secret)
		if !slices.Contains(unfinished, record.Status) && (record.Status != failed || deployed) {
			break
		}
		unchanged := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}}
		err := client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) error { return secrets.Delete(ctx, secret.Name, unchanged) })
		switch {
		case apierrors.IsConflict(err):
			return freed, fmt.Errorf("another Helm works on release %s in %s: its revision %d was %s and has changed since; wait for its end and try again",
				release.Name, release.Namespace, record.Revision, record.Status)
		case err != nil && !apierrors.IsNotFound(err):
			return freed, fmt.Errorf("remove the record of Helm release %s, revision %d, which an interrupted run left %s: %w", release.Name, record.Revision, record.Status, err)
		}
		freed = append(freed, record)
	}
	return freed, nil
}

func record(secret *corev1.Secret) Record {
	revision, err := strconv.Atoi(secret.Labels["version"])
	if err != nil {
		return Record{Revision: -1} // none of Helm's
	}
	return Record{Revision: revision, Status: secret.Labels["status"], Since: secret.CreationTimestamp.Time}
}
