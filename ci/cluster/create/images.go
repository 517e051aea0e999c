package create

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/timeline"
)

const (
	// pullsAtOnce is how many images a node pulls at the same time: the nodes share one way out, and what is needed first
	// must not wait for the rest.
	pullsAtOnce = 2
	// pullTime bounds one image: as long as a machine goes on trying. Over a slow line a large one takes most of that.
	pullTime = 20 * time.Minute
	// anyAtMost is the number of nodes that take pods up to which each of them pulls what only one will run, and others wait for. With more,
	// that costs the others' way out more than it saves.
	anyAtMost = 5

	pullFile = "images.log"
)

// pullImages has the machines pull the layers' images from the moment they run: while etcd's members join, and beside the layers. That
// saves time and is never missed: a kubelet pulls by itself what is not there. It leaves the way out to the first control plane's etcd, though: all else waits
// for that, and over a slow line Longhorn's images would make its own late. The function that it returns ends it.
func (c *creation) pullImages(ctx context.Context) (stop func()) {
	p := &puller{record: c.record, description: c.cluster.Description}
	machines, err := c.cluster.Machines(c.access)
	if err == nil {
		p.pull, p.etcd = machines.Pull, machines.AwaitEtcd
		p.images, err = layerImages(c.cluster.Layers, c.cluster.Description)
	}
	end := func() {}
	if err != nil {
		p.note("no image is pulled ahead: %v", err)
	} else {
		end = p.start(ctx)
	}
	return func() {
		end()
		if machines != nil {
			machines.Close()
		}
	}
}

// pullOrder is whose images come first. All layers begin at once: first comes what Flux waits for, then what takes longest.
var pullOrder = []string{layers.Engine, layers.Storage, layers.Networking, layers.GitOps}

// layerImages are those of the charts that the cluster's layers install, but for what one node alone will run of a layer that no other waits for:
// which node that is, nobody knows yet, and where all share one line, what is pulled in vain makes everything late. Its kubelet pulls it while
// the engine, which Flux waits for, comes up.
func layerImages(terragrunt string, described *config.Cluster) ([]charts.Image, error) {
	list, err := charts.Charts(terragrunt)
	if err != nil {
		return nil, err
	}
	var images []charts.Image
	without := layers.Without(described)
	for _, layer := range pullOrder {
		if slices.ContainsFunc(without, func(one layers.Layer) bool { return one.Name == layer }) {
			continue
		}
		name := layers.Named(layer).Chart(described.Platform)
		at := slices.IndexFunc(list, func(chart charts.Chart) bool { return chart.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%s has no chart %s", charts.ChartsFile, name)
		}
		for _, image := range list[at].Images {
			if image.Nodes != charts.OnAny || layer == layers.Engine {
				images = append(images, image)
			}
		}
	}
	return images, nil
}

// puller has each node pull its images.
type puller struct {
	record      *run.Record
	description *config.Cluster
	images      []charts.Image
	pull        func(ctx context.Context, node, image string) error
	etcd        func(ctx context.Context) error // waits for the image of the first control plane's
}

// start has each node pull that comes up from now on. One that was left as it is, is not asked.
func (p *puller) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var nodes sync.WaitGroup
	founded := sync.OnceValue(func() error { return p.etcd(ctx) })
	p.record.Log.Watch(func(event timeline.Event) {
		if event.Kind != timeline.KindStep || event.Layer != layers.Platform || event.Phase != timeline.PhaseEnd || event.Result != timeline.ResultOK {
			return
		}
		if node, is := p.description.Node(event.Name); is {
			nodes.Go(func() {
				if founded() == nil { // else the run has ended
					p.node(ctx, node)
				}
			})
		}
	})
	return func() {
		cancel()
		nodes.Wait()
	}
}

// node has one node pull all that it needs, some images at a time.
func (p *puller) node(ctx context.Context, node config.Node) {
	wanted := p.wanted(node)
	queue := make(chan string, len(wanted))
	for _, image := range wanted {
		queue <- image
	}
	close(queue)
	var wait sync.WaitGroup
	for range pullsAtOnce {
		wait.Go(func() {
			for image := range queue {
				p.one(ctx, node.Name, image)
			}
		})
	}
	wait.Wait()
}

func (p *puller) wanted(node config.Node) []string {
	var wanted []string
	for _, image := range p.images {
		switch {
		case image.Nodes == charts.OnAll,
			p.description.TakesPods(node) && image.Nodes == charts.OnWorkers,
			p.description.TakesPods(node) && image.Nodes == charts.OnAny && len(p.description.PodNodes()) <= anyAtMost:
			wanted = append(wanted, image.Name)
		}
	}
	return wanted
}

func (p *puller) one(ctx context.Context, node, image string) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	err := p.pull(bounded, node, image)
	switch {
	case err == nil:
		p.note("%s has %s after %s", node, image, timeline.Seconds(time.Since(began)))
	case ctx.Err() == nil: // else the run has ended
		p.note("%v", err)
	}
}

// note writes a line for who wonders where the time went. A run does not fail for the want of it.
func (p *puller) note(format string, values ...any) {
	file, err := os.OpenFile(filepath.Join(p.record.Folder, run.LogFolder, pullFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintln(file, time.Now().UTC().Format(time.RFC3339), redact.Text(fmt.Sprintf(format, values...)))
}
