package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/rollout"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/report"
)

// kubeconfigVariable holds a kubeconfig's text, for a cluster that castle has no description of.
const kubeconfigVariable = "CASTLE_KUBECONFIG"

// objectFlag is an object by namespace and name.
type objectFlag struct{ object *kube.Object }

func (f objectFlag) String() string {
	if f.object == nil || *f.object == (kube.Object{}) {
		return ""
	}
	return f.object.String()
}

func (f objectFlag) Type() string { return "namespace/name" }

func (f objectFlag) Set(text string) (err error) {
	*f.object, err = kube.ParseObject(text)
	return err
}

// deliveryFlags say where a rollout is waited for, and for how long.
type deliveryFlags struct {
	folder   string
	delivery flux.Delivery
	timeout  time.Duration
}

func (f *deliveryFlags) add(command *cobra.Command) {
	f.delivery = flux.DefaultDelivery
	flags := command.Flags()
	flags.StringVar(&f.folder, "cluster-folder", "", "the folder with the cluster.yaml of the cluster that rolls out; else "+kubeconfigVariable+" holds a kubeconfig's text")
	flags.Var(objectFlag{&f.delivery.Deployment}, "deployment", "the Deployment; default: that of the manifest, else the one that has the image")
	flags.Var(objectFlag{&f.delivery.Source}, "flux-source", "the GitRepository that Flux fetches")
	flags.Var(objectFlag{&f.delivery.Kustomization}, "flux-kustomization", "the Kustomization that is asked first to apply it")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait for the rollout")
}

// open gets access to the cluster. Where there is no way to it, that is the waiter's to say when it is asked to wait.
func (f *deliveryFlags) open(cmd *cobra.Command) *clusterWaiter {
	w := &clusterWaiter{deliveryFlags: *f, Waiter: rollout.Waiter{Out: cmd.ErrOrStderr()}}
	w.unreachable = w.reach(cmd.Context())
	return w
}

// clusterWaiter is a report.Waiter on a cluster.
type clusterWaiter struct {
	deliveryFlags
	rollout.Waiter
	unreachable error  // why there is no way to the cluster
	cluster     string // its name, empty where only a kubeconfig is known
}

// reach gets access to the cluster.
func (w *clusterWaiter) reach(ctx context.Context) (err error) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	switch {
	case w.folder == "" && kubeconfig == "":
		return fmt.Errorf("it is not known which cluster rolls out: name its folder with --cluster-folder, or give a kubeconfig's text in %s", kubeconfigVariable)
	case w.folder != "" && kubeconfig != "":
		return fmt.Errorf("--cluster-folder and %s are two ways to a cluster: give one", kubeconfigVariable)
	case kubeconfig != "":
		w.Client, err = kube.FromKubeconfig([]byte(kubeconfig))
		return err
	}
	described := run.Cluster{Folder: w.folder, AgeKey: os.Getenv(secrets.AgeKeyVariable)}
	access, err := described.KubeAccess(ctx)
	if err != nil {
		return err
	}
	w.cluster, w.Client = access.Cluster, access.Client
	return nil
}

// Wait implements report.Waiter.
func (w *clusterWaiter) Wait(ctx context.Context, delivered report.Delivered) (report.Rollout, error) {
	wanted := rollout.Wanted{
		Revision: delivered.Commit, Image: delivered.Image, Repository: delivered.Repository, Delivery: w.delivery,
	}
	err := w.of(delivered.Resource, &wanted)
	if err == nil {
		err = w.unreachable
	}
	var seen rollout.Seen
	if err == nil {
		seen, err = w.Waiter.Wait(ctx, wanted, w.timeout)
	}
	_, failed := errors.AsType[*rollout.FailedError](err)
	return report.Rollout{
		Cluster: w.cluster, Deployment: wanted.Subject(seen), Failed: failed,
		Revision: seen.Revision, Image: seen.Image, Again: w.again(delivered.Commit, delivered.Image),
	}, err
}

// otherWorkloads run images, and have a way of their own to say how far they are.
var otherWorkloads = []string{"StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ReplicaSet"}

// of takes the Deployment from the resource whose image was changed, as the manifest names it, unless a flag has named
// one. Where the manifest holds no workload, as a list of kustomize's or a chart's values do, the image tells.
func (w *clusterWaiter) of(resource report.Resource, wanted *rollout.Wanted) error {
	switch {
	case w.delivery.Deployment != kube.Object{}:
	case slices.Contains(otherWorkloads, resource.Kind):
		return fmt.Errorf("the manifest's resource is a %s, %s, and castle waits for Deployments: leave --wait out, and look with kubectl",
			resource.Kind, resource.Name)
	case resource.Kind == "Deployment":
		wanted.Name = resource.Name
		if resource.Namespace != "" {
			wanted.Deployment = kube.Object{Namespace: resource.Namespace, Name: resource.Name}
		}
	}
	return nil
}

// again is the command that waits for the same once more.
func (w *clusterWaiter) again(commit, image string) string {
	words := []string{"dagger call wait-blog"}
	if w.cluster != "" {
		words = append(words, "--cluster "+w.cluster)
	} else {
		words = append(words, "--kubeconfig …")
	}
	byDefault := flux.DefaultDelivery
	deployment := ""
	if w.delivery.Deployment != (kube.Object{}) {
		deployment = w.delivery.Deployment.String()
	}
	for _, flag := range []struct{ name, value, byDefault string }{
		{"revision", commit, ""},
		{"image", image, ""},
		{"deployment", deployment, ""},
		{"flux-source", w.delivery.Source.String(), byDefault.Source.String()},
		{"flux-kustomization", w.delivery.Kustomization.String(), byDefault.Kustomization.String()},
	} {
		if flag.value != flag.byDefault {
			words = append(words, "--"+flag.name+" "+flag.value)
		}
	}
	return strings.Join(words, " ")
}

// newReachCommand is asked before anything is published: what could not be waited for is not to be done either.
func newReachCommand() *cobra.Command {
	var where deliveryFlags
	command := &cobra.Command{
		Use:   "reach",
		Short: "Make sure that there is a way to the cluster, before a publish that is to be waited for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := where.open(cmd).unreachable; err != nil {
				return fmt.Errorf("nothing is changed yet, since the rollout could not be waited for: %w", err)
			}
			return nil
		},
	}
	where.add(command)
	return command
}

func newRolloutCommand() *cobra.Command {
	var where deliveryFlags
	var format cli.Format
	var wanted report.Delivered
	var published, outcome string
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Ask Flux to look now, and wait until the cluster runs what it finds",
		Long: `Ask Flux to look now, and wait until the cluster runs what it finds: what a
publish or a rollback has changed, with --published, or what is named by
--revision and --image. The report of the former is that of the whole run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			if wanted.Image != "" {
				if err := rollout.CheckImage(wanted.Image); err != nil {
					return err
				}
			}
			waiter := where.open(cmd)
			if published == "" {
				if waiter.unreachable != nil {
					return waiter.unreachable
				}
				seen, err := report.Wait(cmd.Context(), waiter, wanted, began)
				return errors.Join(format.Print(cmd, seen), err)
			}
			result, err := handedOver(cmd.Context(), published)
			if err != nil {
				return err
			}
			if result.Failed != nil {
				err := result.WaitUndone(cmd.Context(), waiter)
				return errors.Join(format.Print(cmd, result), err)
			}
			err = result.WaitRollout(cmd.Context(), waiter)
			if outcome != "" {
				data, failure := json.Marshal(result)
				if failure == nil {
					failure = os.WriteFile(outcome, data, 0o644)
				}
				if failure != nil {
					return errors.Join(err, fmt.Errorf("write the outcome: %w", failure))
				}
				if result.Rollout != nil && result.Rollout.Failed {
					return nil // whoever wanted the outcome goes on from it
				}
			}
			return errors.Join(format.Print(cmd, result), err)
		},
	}
	where.add(command)
	flags := command.Flags()
	flags.StringVar(&published, "published", "", "the file that castle-publish, which may still be at work, writes its result to with --result: it is waited for, and removed; then the rollout is")
	flags.StringVar(&outcome, "outcome", "", "with --published: write the result to this file as well, and succeed without a report where the rollout failed, for castle-publish undo")
	flags.StringVar(&wanted.Commit, "revision", "", "the GitOps repository's commit that must be rolled out; default: the newest")
	flags.StringVar(&wanted.Image, "image", "", "the image that must run, with its tag; default: what the commit names")
	flags.StringVar(&wanted.Repository, "repository", "", "the image's repository, which tells the Deployment where nothing else does")
	command.MarkFlagsMutuallyExclusive("published", "revision")
	command.MarkFlagsMutuallyExclusive("published", "image")
	format.Add(command)
	return command
}
