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
	"tazlab.net/castle/ci/publish"
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

// rolloutFlags say where a rollout is waited for, and for how long.
type rolloutFlags struct {
	folder   string
	delivery flux.Delivery
	timeout  time.Duration
}

func (r *rolloutFlags) add(command *cobra.Command) {
	r.delivery = flux.Delivery{
		Deployment:    kube.Object{Namespace: "blog", Name: "hugo-blog"},
		Source:        kube.Object{Namespace: "flux-system", Name: "flux-system"},
		Kustomization: kube.Object{Namespace: "flux-system", Name: "flux-system"},
	}
	flags := command.Flags()
	flags.StringVar(&r.folder, "cluster-folder", "", "the folder of the cluster that rolls out (terragrunt/live/NAME); else "+kubeconfigVariable+" holds a kubeconfig's text")
	flags.Var(objectFlag{&r.delivery.Deployment}, "deployment", "the blog's Deployment")
	flags.Var(objectFlag{&r.delivery.Source}, "flux-source", "the GitRepository that Flux fetches")
	flags.Var(objectFlag{&r.delivery.Kustomization}, "flux-kustomization", "the Kustomization that is asked first to apply it")
	flags.DurationVar(&r.timeout, "timeout", 10*time.Minute, "how long to wait for the rollout")
}

// open gets access to the cluster.
func (r *rolloutFlags) open(cmd *cobra.Command) (*rolloutWaiter, error) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	w := &rolloutWaiter{rolloutFlags: *r}
	var err error
	switch {
	case r.folder == "" && kubeconfig == "":
		return nil, fmt.Errorf("it is not known which cluster rolls out: name its folder with --cluster-folder, or give a kubeconfig's text in %s", kubeconfigVariable)
	case r.folder != "" && kubeconfig != "":
		return nil, fmt.Errorf("--cluster-folder and %s are two ways to a cluster: give one", kubeconfigVariable)
	case kubeconfig != "":
		w.rollouts, err = run.RolloutsByKubeconfig(kubeconfig, cmd.ErrOrStderr())
	default:
		described := run.Cluster{Folder: r.folder, AgeKey: os.Getenv(secrets.AgeKeyVariable), Out: cmd.ErrOrStderr()}
		w.rollouts, err = described.Rollouts(cmd.Context())
	}
	return w, err
}

// rolloutWaiter is a publish.Waiter on a cluster.
type rolloutWaiter struct {
	rolloutFlags
	rollouts *run.Rollouts
}

func (w *rolloutWaiter) WaitRollout(ctx context.Context, commit, image string) (publish.Rollout, error) {
	seen, err := w.rollouts.Wait(ctx, rollout.Wanted{Revision: commit, Image: image, Delivery: w.delivery}, w.timeout)
	return publish.Rollout{
		Cluster: w.rollouts.Cluster, Deployment: w.delivery.Deployment.String(),
		Revision: seen.Revision, Image: seen.Image, Again: w.again(commit, image),
	}, err
}

// again is the command that waits for the same once more.
func (w *rolloutWaiter) again(commit, image string) string {
	words := []string{"dagger call wait-blog"}
	if w.rollouts.Cluster != "" {
		words = append(words, "--cluster "+w.rollouts.Cluster)
	} else {
		words = append(words, "--kubeconfig …")
	}
	var fresh rolloutFlags
	fresh.add(&cobra.Command{})
	for _, flag := range []struct{ name, value, byDefault string }{
		{"revision", commit, ""},
		{"image", image, ""},
		{"deployment", w.delivery.Deployment.String(), fresh.delivery.Deployment.String()},
		{"flux-source", w.delivery.Source.String(), fresh.delivery.Source.String()},
		{"flux-kustomization", w.delivery.Kustomization.String(), fresh.delivery.Kustomization.String()},
	} {
		if flag.value != flag.byDefault {
			words = append(words, "--"+flag.name+" "+flag.value)
		}
	}
	return strings.Join(words, " ")
}

func newWaitCommand() *cobra.Command {
	var where rolloutFlags
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
			result, err := publish.Wait(cmd.Context(), waiter, commit, image, began)
			return errors.Join(format.Print(cmd, result), err)
		},
	}
	where.add(command)
	command.Flags().StringVar(&commit, "revision", "", "the GitOps repository's commit that must be rolled out; default: the newest")
	command.Flags().StringVar(&image, "image", "", "the image that must run, with its tag; default: what the commit names")
	format.Add(command)
	return command
}
