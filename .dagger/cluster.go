package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"dagger/castle/internal/dagger"
)

// Folders in the container that a cluster is worked on in.
const (
	repositoryMount = "/repository" // has the cluster's folder where the repository has it
	layersMount     = "/layers"
	stateMount      = "/state"
	chartsFolder    = "/usr/share/castle/charts"
)

// described is a cluster by its description, and what comes with it.
type described struct {
	castle *Castle
	name   string
	// own is the cluster's folder, and folder its path in the repository.
	own     *dagger.Directory
	folder  string
	layers  *dagger.Directory
	ageKey  *dagger.Secret
	sandbox sandbox
	description
}

// description is what is read here of what `castle-cluster describe` prints.
type description struct {
	Platform string `json:"platform"`
	GitOps   struct {
		URL    string `json:"url"`
		Branch string `json:"branch"`
	} `json:"gitops"`
	Secrets struct {
		Infisical json.RawMessage `json:"infisical"`
	} `json:"secrets"`
}

// Cluster is a cluster that a repository describes.
type Cluster struct {
	// +private
	Castle *Castle
	// Name is that of its folder.
	Name string
	// +private
	Repository *dagger.Directory
	// +private
	AgeKey *dagger.Secret
	// +private
	TimeScale string
	// +private
	Fault []string
}

// Cluster is a cluster, for pipelines that do several things with it.
func (m *Castle) Cluster(
	// The cluster: a folder with a cluster.yaml in the clusters' folder.
	name string,
	// The repository with the clusters, or the folder that holds them.
	// Default: the repository that the module is called in.
	// +defaultPath="/"
	// +ignore=["**/.git", "**/.terragrunt-cache", "**/node_modules", "**/*.agekey", "**/*.tfstate*", "**/kubeconfig", "**/talosconfig"]
	repository *dagger.Directory,
	// The age key that decrypts the cluster's SOPS file (env:SOPS_AGE_KEY,
	// file:PATH). Default: for a sandbox its own.
	// +optional
	ageKey *dagger.Secret,
	// How much of a homelab's time the sandbox takes: 1 is real time, 0 none.
	// +default="0.05"
	timeScale string,
	// What goes wrong in the sandbox, such as webhook-late=20s; several times.
	// +optional
	fault []string,
) *Cluster {
	return &Cluster{Castle: m, Name: name, Repository: repository, AgeKey: ageKey, TimeScale: timeScale, Fault: fault}
}

// optionalCluster is nil where none is named.
func (m *Castle) optionalCluster(name string, repository *dagger.Directory, ageKey *dagger.Secret, timeScale string) *Cluster {
	if name == "" {
		return nil
	}
	return m.Cluster(name, repository, ageKey, timeScale, nil)
}

// locate finds the cluster's folder in its repository, and reads nothing in it.
func (c *Cluster) locate(ctx context.Context) (*described, *clusterFolders, error) {
	found, err := c.Castle.clustersOf(ctx, c.Repository)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(found.names, c.Name) {
		return nil, nil, fmt.Errorf("there is no cluster %q: there are %s", c.Name, strings.Join(found.names, " "))
	}
	if err := checkTimeScale(c.TimeScale); err != nil {
		return nil, nil, err
	}
	d := &described{
		castle: c.Castle, name: c.Name, ageKey: c.AgeKey,
		folder:  path.Join(found.folder, c.Name),
		sandbox: sandbox{timeScale: c.TimeScale, faults: c.Fault},
	}
	d.own = c.Repository.Directory(d.folder)
	return d, found, nil
}

// describe finds the cluster and asks castle for its description, so that one
// with mistakes is refused with all of them. castle is compiled for whatever
// comes next, and the answer is cached as long as the cluster's own folder is
// the same.
func (c *Cluster) describe(ctx context.Context) (*described, error) {
	d, found, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	d.layers = c.Castle.layersOf(c.Repository, found.layers)
	container, err := c.Castle.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	text, err := container.
		With(d.mounted).
		WithExec([]string{clusterProgram, "describe", "--folder=" + d.folder, "--format=json"}).
		Stdout(ctx)
	if err != nil {
		return nil, plain(err)
	}
	if err := json.Unmarshal([]byte(text), &d.description); err != nil {
		return nil, fmt.Errorf("castle-cluster describe: %w", err)
	}
	if d.isSandbox() && d.ageKey == nil {
		// The sandbox's key opens nothing but the sandbox.
		key, err := d.own.File("age.key").Contents(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s has no age.key: give its key with --age-key", d.folder)
		}
		d.ageKey = dag.SetSecret("castle-sandbox-age-key", key)
	}
	return d, nil
}

func (d *described) isSandbox() bool { return d.Platform == "sandbox" }

// mounted gives a container the cluster's folder, by the path that it has in the
// repository, which messages name it by.
func (d *described) mounted(container *dagger.Container) *dagger.Container {
	return container.WithMountedDirectory(path.Join(repositoryMount, d.folder), d.own).WithWorkdir(repositoryMount)
}

// volume is one of the cluster's cache volumes. Two repositories may have a
// sandbox of the same name, each with secrets of its own, which the other's
// world would not know: the project in its Infisical tells them apart.
func (d *described) volume(what string) *dagger.CacheVolume {
	name := "castle-" + what + "-" + d.name
	var infisical struct {
		Project string `json:"project"`
	}
	// Where there is none, this is a text and no project.
	if d.isSandbox() && json.Unmarshal(d.Secrets.Infisical, &infisical) == nil {
		name += "-" + infisical.Project
	}
	return dag.CacheVolume(name)
}

// remote is the cluster's GitOps repository as castle reaches it, and the token
// for it: that of its world for a sandbox, where none is given. It opens nothing
// outside.
func (d *described) remote(world *world, given *dagger.Secret) (url string, token *dagger.Secret) {
	if world == nil {
		return d.GitOps.URL, given
	}
	if given == nil {
		given = dag.SetSecret("castle-"+d.name+"-git-token", world.Git.Token)
	}
	// The world serves Git on plain HTTP for who does not know its authority.
	return strings.Replace(d.GitOps.URL, "https://", "http://", 1), given
}

// plainHostOf is the host of a sandbox's own remote, which gets its token over
// plain HTTP: both are in one network that nobody else is in.
func plainHostOf(url string, world *world) (string, error) {
	if world == nil {
		return "", nil
	}
	return hostOfURL(url)
}

// plain is castle's container with the description, for what needs no tool.
func (d *described) plain() (*dagger.Container, error) {
	container, err := d.castle.container(clusterProgram)
	if err != nil {
		return nil, err
	}
	return container.With(d.mounted).WithMountedDirectory(layersMount, d.layers), nil
}

// stateful has the cluster's states and records as well.
func (d *described) stateful() (*dagger.Container, error) {
	container, err := d.plain()
	if err != nil {
		return nil, err
	}
	return container.WithMountedCache(stateMount, d.volume("state")), nil
}

// container has everything that works on the cluster itself: the tools, the
// key, and for a sandbox the way into its world.
func (d *described) container(ctx context.Context) (*dagger.Container, error) {
	container, err := d.stateful()
	if err != nil {
		return nil, err
	}
	enter, err := d.enter(ctx)
	if err != nil {
		return nil, err
	}
	container, err = d.castle.withLayerTools(ctx, container, d.layers)
	if err != nil {
		return nil, err
	}
	return uncached(container).With(enter), nil
}

// enter gives a container the key, and for a sandbox the way into its world.
func (d *described) enter(ctx context.Context) (dagger.WithContainerFunc, error) {
	if d.ageKey == nil {
		return nil, d.keyMissing()
	}
	if !d.isSandbox() {
		return func(container *dagger.Container) *dagger.Container {
			return container.WithSecretVariable("SOPS_AGE_KEY", d.ageKey)
		}, nil
	}
	world, err := d.world(ctx)
	if err != nil {
		return nil, err
	}
	proxy := fmt.Sprintf("http://%s:%d", sandboxHost, sandboxProxyPort)
	return func(container *dagger.Container) *dagger.Container {
		return container.
			WithSecretVariable("SOPS_AGE_KEY", d.ageKey).
			WithServiceBinding(sandboxHost, world).
			WithEnvVariable("HTTP_PROXY", proxy).
			WithEnvVariable("HTTPS_PROXY", proxy).
			WithEnvVariable("http_proxy", proxy) // Git knows this name only
	}, nil
}

func (d *described) keyMissing() error {
	return fmt.Errorf("cluster %s has its secrets in SOPS files: give the age key with --age-key (env:SOPS_AGE_KEY, file:PATH)", d.name)
}

// withoutInit makes castle the first process of its container. Dagger's own would
// hold the age key in its environment, where the layers' tools can read it.
var withoutInit = dagger.ContainerWithExecOpts{NoInit: true}

// command runs castle on the cluster and returns what it prints.
func (d *described) command(ctx context.Context, args ...string) (string, error) {
	container, err := d.container(ctx)
	if err != nil {
		return "", err
	}
	text, err := container.WithExec(d.args(args...), withoutInit).Stdout(ctx)
	return text, plain(err)
}

func (d *described) args(args ...string) []string {
	args = append(append([]string{clusterProgram}, args...), "--folder="+d.folder, "--layers="+layersMount, "--state="+stateMount, "--charts="+chartsFolder, "--providers="+providersLock)
	if d.isSandbox() && d.sandbox.timeScale != "1" {
		args = append(args, "--scaled")
	}
	if d.castle.LocalStates {
		args = append(args, "--local-states")
	}
	if d.castle.AllowUnpinned {
		args = append(args, "--allow-unpinned")
	}
	return args
}

// secret runs castle on the cluster for something that must not stand on a
// disk, as what a command prints does: it comes encrypted with a key that lives
// in memory only.
func (d *described) secret(ctx context.Context, name string, args ...string) (*dagger.Secret, error) {
	container, err := d.container(ctx)
	if err != nil {
		return nil, err
	}
	return unsealed(ctx, container, d.name+"-"+name, d.args(args...))
}

// unsealed is what a command prints that prints under a key only.
func unsealed(ctx context.Context, container *dagger.Container, name string, command []string) (*dagger.Secret, error) {
	key := make([]byte, 32)
	rand.Read(key)
	text, err := container.
		WithSecretVariable("CASTLE_SEAL_KEY", dag.SetSecret("castle-seal-"+rand.Text(), base64.StdEncoding.EncodeToString(key))).
		WithExec(command).
		Stdout(ctx)
	if err != nil {
		return nil, plain(err)
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, fmt.Errorf("castle printed no sealed %s", name)
	}
	opened, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
	if err != nil {
		return nil, err
	}
	return dag.SetSecret("castle-"+name, string(opened)), nil
}
