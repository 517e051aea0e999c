package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Stalled is the cause of an end: nothing of the cluster's has gone for a while.
type Stalled struct {
	For  time.Duration
	Held []string // objects that were told to go and are there, with what holds each
}

func (s *Stalled) Error() string {
	text := fmt.Sprintf("nothing has gone for %s", s.For)
	if len(s.Held) > 0 {
		text += ": " + strings.Join(shortened(s.Held), ", ")
	}
	return text
}

// lookEvery is how often the cluster's objects are counted.
const lookEvery = 3 * time.Second

// lookLimit bounds one count.
const lookLimit = 10 * time.Second

// While does something that makes the cluster's objects go, and ends it when they have stopped going: when for the time of patience their number
// has had no new low. The error is a *Stalled then. More objects may come meanwhile, such as a job that cleans up.
func (c *Cluster) While(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	watched, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wait sync.WaitGroup
	wait.Go(func() { c.watch(watched, patience, stop) })
	err := do(watched)
	stalled, is := errors.AsType[*Stalled](context.Cause(watched))
	stop(nil)
	wait.Wait()
	if is && ctx.Err() == nil && err != nil {
		return stalled
	}
	return err
}

func (c *Cluster) watch(ctx context.Context, patience time.Duration, stop context.CancelCauseFunc) {
	lowest, at := -1, time.Now()
	var held []string
	for {
		bounded, cancel := context.WithTimeout(ctx, lookLimit)
		seen, err := c.look(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && (lowest < 0 || seen.objects < lowest):
			lowest, at, held = seen.objects, time.Now(), seen.held
		case err == nil:
			held = seen.held
		}
		if since := time.Since(at); since >= patience {
			stop(&Stalled{For: patience, Held: held})
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// seen is what there is.
type seen struct {
	objects int
	held    []string
}

// passing are kinds whose objects come and go without anybody's removing something.
var passing = []string{"events", "leases"}

// atOnce is how many kinds are listed at the same time.
const atOnce = 8

// look counts all objects of all kinds. Kinds of which the API says that they cannot be listed, such as one whose conversion webhook is dead,
// count as none. Where it does not answer, such as while it restarts, there is no count: a low one would be a mark that nothing gets below.
func (c *Cluster) look(ctx context.Context) (seen, error) {
	lists, err := c.kinds.ServerPreferredResources()
	if len(lists) == 0 || !answered(err) {
		return seen{}, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	var (
		mutex sync.Mutex
		group errgroup.Group
		all   seen
	)
	group.SetLimit(atOnce)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return seen{}, err
		}
		for _, kind := range list.APIResources {
			if slices.Contains(passing, kind.Name) {
				continue
			}
			group.Go(func() error {
				objects, err := c.metadata.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
				if !answered(err) || comesAndGoes(err) {
					return err
				}
				if err != nil {
					return nil
				}
				mutex.Lock()
				defer mutex.Unlock()
				all.objects += len(objects.Items)
				for _, object := range objects.Items {
					if object.DeletionTimestamp != nil {
						all.held = append(all.held, heldObject(kind.Kind, &object))
					}
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return seen{}, err
	}
	slices.Sort(all.held)
	return all, ctx.Err()
}

// comesAndGoes tells of an API that goes away, has just come back or is busy: it may know none of its credentials yet.
func comesAndGoes(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// answered tells that the API has answered, be it with an error, for each group of kinds.
func answered(err error) bool {
	if groups, is := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); is {
		for _, err := range groups.Groups {
			if !answered(err) {
				return false
			}
		}
		return true
	}
	_, said := errors.AsType[*apierrors.StatusError](err)
	_, stale := errors.AsType[discovery.StaleGroupVersionError](err) // of an aggregated API whose server is dead
	return err == nil || said || stale
}

func heldObject(kind string, object *metav1.PartialObjectMetadata) string {
	text := kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
	if len(object.Finalizers) > 0 {
		text += " (" + strings.Join(object.Finalizers, ", ") + ")"
	}
	return text
}
