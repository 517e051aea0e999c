package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Target names objects of the API: one, or those of a kind that the namespace and the labels leave.
type Target struct {
	Resource  schema.GroupVersionResource
	Namespace string // empty: cluster-wide
	Name      string // empty: all
	Labels    string // a selector; empty: all
}

// View is what exists of each target, in the targets' order, sorted by namespace and name. It is not to be changed.
type View [][]*unstructured.Unstructured

// Rule judges a view: what a person should know about it, and whether it is as wished. An error says that it never
// will be.
type Rule func(View) (seen string, ok bool, err error)

const (
	// RequestTimeout bounds one request.
	RequestTimeout = 5 * time.Second
	// watchFor is how long a watch is held before all is listed anew, which bounds what a silently dead one can cost.
	watchFor = 30 * time.Second
	// retryAfter is the pause before a failed list or a closed watch is tried again.
	retryAfter = 150 * time.Millisecond
)

// Follow lists and watches the targets until the rule holds for all of them together. Closed watches, expired resource
// versions, API servers that restart and kinds that are not defined yet are reported and waited out.
func (c *Client) Follow(ctx context.Context, targets []Target, rule Rule, report func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{
		kube:    c,
		targets: targets,
		states:  make([]state, len(targets)),
		changed: make(chan struct{}, 1),
		failed:  make(chan error, len(targets)),
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for i := range targets {
		group.Go(func() { f.follow(ctx, i) })
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-f.failed:
			return err
		case <-f.changed:
		}
		view, trouble := f.view()
		if trouble != "" {
			report(trouble)
			continue
		}
		if view == nil {
			continue
		}
		seen, ok, err := rule(view)
		if err != nil {
			return err
		}
		report(seen)
		if ok {
			return nil
		}
	}
}

// follower keeps the newest state of the targets.
type follower struct {
	kube    *Client
	targets []Target
	changed chan struct{} // holds a token when there is something new
	failed  chan error

	mutex  sync.Mutex
	states []state
}

type state struct {
	listed  bool // whether objects is what exists now, as far as a watch can tell
	trouble string
	objects map[string]*unstructured.Unstructured
}

// view is nil while a target is not known.
func (f *follower) view() (View, string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	view := make(View, len(f.states))
	for i, state := range f.states {
		if state.trouble != "" {
			return nil, state.trouble
		}
		if !state.listed {
			return nil, ""
		}
		for _, key := range slices.Sorted(maps.Keys(state.objects)) {
			view[i] = append(view[i], state.objects[key])
		}
	}
	return view, ""
}

func (f *follower) update(i int, change func(*state)) {
	f.mutex.Lock()
	change(&f.states[i])
	f.mutex.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// follow lists and watches one target until the context ends or an error that does not pass.
func (f *follower) follow(ctx context.Context, i int) {
	patience := patience{grace: f.kube.Grace}
	for {
		err := f.listAndWatch(ctx, i)
		if ctx.Err() != nil {
			return
		}
		fatal := patience.judge(err)
		if err != nil {
			seen := fmt.Sprintf("cannot read %s: %v", f.targets[i].Resource.Resource, Brief(err))
			if apierrors.IsNotFound(err) && fatal == nil {
				bounded, cancel := context.WithTimeout(ctx, RequestTimeout)
				answer := f.kube.UnknownKind(bounded, f.targets[i].Resource)
				cancel()
				seen, fatal = answer.Seen, answer.Fatal
			}
			f.update(i, func(s *state) { s.listed, s.trouble = false, seen })
		}
		if fatal != nil {
			f.failed <- fatal
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
}

// listAndWatch returns nil when the watch ended as watches do.
func (f *follower) listAndWatch(ctx context.Context, i int) error {
	target := f.targets[i]
	client := f.kube.Resource(target.Resource).Namespace(target.Namespace)
	options := metav1.ListOptions{LabelSelector: target.Labels}
	if target.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, target.Name).String()
	}

	bounded, cancel := context.WithTimeout(ctx, RequestTimeout)
	list, err := client.List(bounded, options)
	cancel()
	if err != nil {
		return err
	}
	objects := make(map[string]*unstructured.Unstructured, len(list.Items))
	for j := range list.Items {
		objects[keyOf(&list.Items[j])] = &list.Items[j]
	}
	f.update(i, func(s *state) { *s = state{listed: true, objects: objects} })

	bounded, cancel = context.WithTimeout(ctx, watchFor+RequestTimeout)
	defer cancel()
	seconds := int64(watchFor / time.Second)
	options.ResourceVersion, options.TimeoutSeconds = list.GetResourceVersion(), &seconds
	watcher, err := client.Watch(bounded, options)
	if err != nil {
		return expired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error || !ok:
			return expired(apierrors.FromObject(event.Object))
		case event.Type == watch.Deleted:
			f.update(i, func(s *state) { delete(s.objects, keyOf(object)) })
		case event.Type == watch.Added || event.Type == watch.Modified:
			f.update(i, func(s *state) { s.objects[keyOf(object)] = object })
		}
	}
	return nil
}

// expired drops the error that a new list mends: the watch's version is too old for the server.
func expired(err error) error {
	if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return nil
	}
	return err
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}
