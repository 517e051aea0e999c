package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	flags.StringVar(&f.folder, "cluster-folder", "", "the folder of the cluster that rolls out (terragrunt/live/NAME); else "+kubeconfigVariable+" holds a kubeconfig's text")
	flags.Var(objectFlag{&f.delivery.Deployment}, "deployment", "the blog's Deployment")
	flags.Var(objectFlag{&f.delivery.Source}, "flux-source", "the GitRepository that Flux fetches")
	flags.Var(objectFlag{&f.delivery.Kustomization}, "flux-kustomization", "the Kustomization that is asked first to apply it")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait for the rollout")
}

// open gets access to the cluster.
func (f *deliveryFlags) open(cmd *cobra.Command) (*clusterWaiter, error) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	w := &clusterWaiter{deliveryFlags: *f, waiter: rollout.Waiter{Out: cmd.ErrOrStderr()}}
	switch {
	case f.folder == "" && kubeconfig == "":
		return nil, fmt.Errorf("it is not known which cluster rolls out: name its folder with --cluster-folder, or give a kubeconfig's text in %s", kubeconfigVariable)
	case f.folder != "" && kubeconfig != "":
		return nil, fmt.Errorf("--cluster-folder and %s are two ways to a cluster: give one", kubeconfigVariable)
	case kubeconfig != "":
		client, err := kube.FromKubeconfig([]byte(kubeconfig))
		if err != nil {
			return nil, err
		}
		w.waiter.Client = client
	default:
		described := run.Cluster{Folder: f.folder, AgeKey: os.Getenv(secrets.AgeKeyVariable)}
		access, err := described.KubeAccess(cmd.Context())
		if err != nil {
			return nil, err
		}
		w.cluster, w.waiter.Client = access.Cluster, access.Client
	}
	return w, nil
}

// clusterWaiter is a report.Waiter on a cluster.
type clusterWaiter struct {
	deliveryFlags
	cluster string // its name, empty where only a kubeconfig is known
	waiter  rollout.Waiter
}

func (w *clusterWaiter) Wait(ctx context.Context, commit, image string) (report.Rollout, error) {
	seen, err := w.waiter.Wait(ctx, rollout.Wanted{Revision: commit, Image: image, Delivery: w.delivery}, w.timeout)
	return report.Rollout{
		Cluster: w.cluster, Deployment: w.delivery.Deployment.String(),
		Revision: seen.Revision, Image: seen.Image, Again: w.again(commit, image),
	}, err
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
	for _, flag := range []struct{ name, value, byDefault string }{
		{"revision", commit, ""},
		{"image", image, ""},
		{"deployment", w.delivery.Deployment.String(), byDefault.Deployment.String()},
		{"flux-source", w.delivery.Source.String(), byDefault.Source.String()},
		{"flux-kustomization", w.delivery.Kustomization.String(), byDefault.Kustomization.String()},
	} {
		if flag.value != flag.byDefault {
			words = append(words, "--"+flag.name+" "+flag.value)
		}
	}
	return strings.Join(words, " ")
}

func newWaitCommand() *cobra.Command {
	var where deliveryFlags
	var format cli.Format
	var commit, image string
	command := &cobra.Command{
		Use:   "wait",
		Short: "Ask Flux to look now, and wait until the cluster runs what it finds",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			if image != "" {
				if err := rollout.CheckImage(image); err != nil {
					return err
				}
			}
			waiter, err := where.open(cmd)
			if err != nil {
				return err
			}
			result, err := report.Wait(cmd.Context(), waiter, commit, image, began)
			return errors.Join(format.Print(cmd, result), err)
		},
	}
	where.add(command)
	command.Flags().StringVar(&commit, "revision", "", "the GitOps repository's commit that must be rolled out; default: the newest")
	command.Flags().StringVar(&image, "image", "", "the image that must run, with its tag; default: what the commit names")
	format.Add(command)
	return command
}
