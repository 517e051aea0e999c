package create

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/timeline"
)

const terragruntFolder = "../../../terragrunt"

// pulled is one image that a node was asked for.
type pulled struct{ node, image string }

// newPuller pulls for two control planes and so many workers, as pull does. Its record is a run's.
func newPuller(t *testing.T, workers int, pull func(context.Context, pulled) error) *puller {
	t.Helper()
	described := &config.Cluster{Name: "test"}
	for _, name := range []string{"cp-1", "cp-2"} {
		described.Nodes = append(described.Nodes, config.Node{Name: name, Role: config.RoleControlPlane})
	}
	for i := range workers {
		described.Nodes = append(described.Nodes, config.Node{Name: fmt.Sprint("worker-", i+1), Role: config.RoleWorker})
	}
	redact.Add("canary-of-a-secret")
	r := &run.Record{Folder: t.TempDir()}
	if err := os.Mkdir(filepath.Join(r.Folder, run.LogFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.Log, err = timeline.Open(r.Events()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Log.Close() })
	return &puller{record: r, description: described,
		images: []charts.Image{{Name: "operator:1", Nodes: charts.OnAny}, {Name: "storage:1", Nodes: charts.OnWorkers}, {Name: "speaker:1", Nodes: charts.OnAll}},
		pull:   func(ctx context.Context, node, image string) error { return pull(ctx, pulled{node, image}) },
		etcd:   func(context.Context) error { return nil }}
}

// tell notes that a node's step has come so far.
func (p *puller) tell(t *testing.T, node, phase, result string) {
	t.Helper()
	if err := p.record.Log.Append(timeline.Event{Kind: timeline.KindStep, Layer: layers.Platform, Name: node, Phase: phase, Result: result}); err != nil {
		t.Fatal(err)
	}
}

func (p *puller) notes(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.record.Folder, run.LogFolder, pullFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func TestANodePullsItsImagesWhenItRunsAndNoneWhenItWasLeftAsItIs(t *testing.T) {
	asked := make(chan pulled, 100)
	p := newPuller(t, 2, func(_ context.Context, what pulled) error { asked <- what; return nil })
	stop := p.start(t.Context())
	p.tell(t, "worker-2", timeline.PhaseEnd, timeline.ResultUnchanged)
	p.tell(t, "cp-2", timeline.PhaseEnd, timeline.ResultFailed)
	p.tell(t, "cp-1", timeline.PhaseStart, "")
	p.tell(t, "etcd", timeline.PhaseEnd, timeline.ResultOK)
	p.tell(t, "cp-1", timeline.PhaseEnd, timeline.ResultOK)
	p.tell(t, "worker-1", timeline.PhaseEnd, timeline.ResultOK)
	want := []pulled{{"cp-1", "speaker:1"}, {"worker-1", "operator:1"}, {"worker-1", "speaker:1"}, {"worker-1", "storage:1"}}
	var got []pulled
	for range want {
		got = append(got, <-asked)
	}
	stop()
	for len(asked) > 0 {
		got = append(got, <-asked)
	}
	slices.SortFunc(got, func(a, b pulled) int { return strings.Compare(a.node+a.image, b.node+b.image) })
	if !slices.Equal(got, want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
	if notes := p.notes(t); strings.Count(notes, "\n") != len(want) || !strings.Contains(notes, "worker-1 has storage:1 after ") {
		t.Errorf("noted:\n%s", notes)
	}
}

func TestTheWayOutIsLeftToTheFirstEtcd(t *testing.T) {
	asked, founded := make(chan pulled, 100), make(chan struct{})
	p := newPuller(t, 1, func(_ context.Context, what pulled) error { asked <- what; return nil })
	waits := make(chan struct{})
	p.etcd = func(ctx context.Context) error {
		close(waits) // one asks for all
		select {
		case <-founded:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	stop := p.start(t.Context())
	p.tell(t, "worker-1", timeline.PhaseEnd, timeline.ResultOK)
	p.tell(t, "cp-1", timeline.PhaseEnd, timeline.ResultOK)
	select {
	case <-waits:
	case what := <-asked:
		t.Fatalf("%v is pulled beside it", what)
	}
	close(founded)
	for range 4 {
		<-asked
	}
	stop()

	late := make(chan pulled, 100)
	p = newPuller(t, 1, func(_ context.Context, what pulled) error { late <- what; return nil })
	begun := make(chan struct{})
	p.etcd = func(ctx context.Context) error { close(begun); <-ctx.Done(); return ctx.Err() }
	stop = p.start(t.Context())
	p.tell(t, "worker-1", timeline.PhaseEnd, timeline.ResultOK)
	select {
	case <-begun:
	case what := <-late:
		t.Fatalf("%v is pulled beside it", what)
	}
	stop()
	if len(late) > 0 {
		t.Errorf("%v is pulled when the run has ended", <-late)
	}
}

func TestANodePullsSomeImagesAtATimeInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan string, 100), make(chan struct{})
		p := newPuller(t, 1, func(_ context.Context, what pulled) error {
			begun <- what.image
			<-end
			return nil
		})
		var wait sync.WaitGroup
		wait.Go(func() { p.node(t.Context(), p.description.Workers()[0]) })
		synctest.Wait()
		first := []string{<-begun, <-begun}
		slices.Sort(first)
		if !slices.Equal(first, []string{"operator:1", "storage:1"}) || len(begun) != 0 {
			t.Errorf("first %v are pulled, and %d more", first, len(begun))
		}
		end <- struct{}{}
		synctest.Wait()
		if third := <-begun; third != "speaker:1" {
			t.Errorf("then %s is", third)
		}
		close(end)
		wait.Wait()
	})
}

func TestAnImageThatIsNotPulledIsNotedAndTheOthersAre(t *testing.T) {
	p := newPuller(t, 1, func(_ context.Context, what pulled) error {
		if what.image == "operator:1" {
			return errors.New("worker-1 does not pull operator:1: not found, canary-of-a-secret")
		}
		return nil
	})
	p.node(t.Context(), p.description.Workers()[0])
	notes := p.notes(t)
	if strings.Contains(notes, "canary") {
		t.Error("a secret is noted")
	}
	for _, line := range []string{" worker-1 does not pull operator:1: not found, ", " worker-1 has storage:1 after ", " worker-1 has speaker:1 after "} {
		if strings.Count(notes, line) != 1 {
			t.Errorf("%q is not noted once", line)
		}
	}
	if t.Failed() {
		t.Errorf("noted:\n%s", notes)
	}
}

func TestPullsEndWithTheRun(t *testing.T) {
	begun := make(chan pulled, 100)
	p := newPuller(t, 1, func(ctx context.Context, what pulled) error {
		begun <- what
		<-ctx.Done()
		return ctx.Err()
	})
	stop := p.start(t.Context())
	p.tell(t, "worker-1", timeline.PhaseEnd, timeline.ResultOK)
	<-begun
	<-begun
	stop()
	if len(begun) != 0 {
		t.Errorf("%v was begun at the end", <-begun)
	}
	if notes := p.notes(t); notes != "" {
		t.Errorf("noted:\n%s", notes)
	}
}

func TestManyWorkersDoNotAllPullWhatOneOfThemRuns(t *testing.T) {
	for workers, want := range map[int][]string{anyAtMost: {"operator:1", "storage:1", "speaker:1"}, anyAtMost + 1: {"storage:1", "speaker:1"}} {
		p := newPuller(t, workers, nil)
		if got := p.wanted(p.description.Workers()[0]); !slices.Equal(got, want) {
			t.Errorf("one of %d workers pulls %v, want %v", workers, got, want)
		}
	}
}

func TestControlPlanesPullWhatPodsRunWhereThereIsNoWorker(t *testing.T) {
	p := newPuller(t, 0, nil)
	if got, want := p.wanted(p.description.ControlPlanes()[0]), []string{"operator:1", "storage:1", "speaker:1"}; !slices.Equal(got, want) {
		t.Errorf("a control plane pulls %v, want %v", got, want)
	}
	p = newPuller(t, 1, nil)
	if got, want := p.wanted(p.description.ControlPlanes()[0]), []string{"speaker:1"}; !slices.Equal(got, want) {
		t.Errorf("beside a worker, a control plane pulls %v, want %v", got, want)
	}
}

func TestEveryChartThatALayerInstallsHasItsImagesPulled(t *testing.T) {
	installs := regexp.MustCompile(`(?m)^ +chart += (?:"\$\{var\.charts\}/([a-z-]+)"|.* == "sandbox" \? "([a-z-]+)" : "([a-z-]+)")$`)
	modules, err := filepath.Glob(filepath.Join(terragruntFolder, "modules", "*", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := charts.Charts(terragruntFolder)
	if err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob(filepath.Join(terragruntFolder, layers.UnitsFolder, "*", "terragrunt.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string][]charts.Image{} // by platform
	for _, file := range slices.Concat(modules, units) {
		if strings.HasSuffix(filepath.Dir(file), "-"+config.PlatformAWS) {
			continue // of no layer yet
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range installs.FindAllStringSubmatch(string(text), -1) {
			names := map[string]string{config.PlatformProxmox: match[1], config.PlatformSandbox: match[1]}
			if match[1] == "" {
				names = map[string]string{config.PlatformProxmox: match[3], config.PlatformSandbox: match[2]}
			}
			for platform, name := range names {
				at := slices.IndexFunc(list, func(c charts.Chart) bool { return c.Name == name })
				if at < 0 || len(list[at].Images) == 0 {
					t.Errorf("%s: %s has no images of %s", file, charts.ChartsFile, name)
					continue
				}
				installed[platform] = append(installed[platform], list[at].Images...)
			}
		}
	}
	pool := config.LoadBalancer{Pool: []string{"192.0.2.0/24"}}
	for platform, want := range installed {
		bare, err := layerImages(terragruntFolder, &config.Cluster{Platform: platform, LoadBalancer: pool})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(bare, func(image charts.Image) bool { return strings.Contains(image.Name, "longhorn") }) {
			t.Errorf("on %s a cluster without storage pulls Longhorn: %v", platform, bare)
		}
		got, err := layerImages(terragruntFolder, &config.Cluster{Platform: platform, LoadBalancer: pool, Storage: config.Storage{Replicas: 1}})
		if err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(image charts.Image) bool {
			return image.Nodes == charts.OnAny && !strings.Contains(image.Name, "external-secrets") // nobody waits for it
		})
		byName := func(a, b charts.Image) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(got, byName)
		slices.SortFunc(want, byName)
		if len(want) < 4 || !slices.Equal(got, want) {
			t.Errorf("on %s a cluster pulls %v, its layers install %v", platform, got, want)
		}
	}
}
