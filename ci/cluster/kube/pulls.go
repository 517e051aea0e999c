package kube

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Pulls are the images that the nodes pull for pods, as the kubelets' events tell.
type Pulls struct {
	Going  []string // "IMAGE on NODE", the longest first
	Pulled int      // how many have arrived; events are kept for an hour
}

// The reasons of a kubelet's events, and the image that their message names (pkg/kubelet/events/event.go and images/image_manager.go of
// Kubernetes v1.36).
const (
	reasonPulling = "Pulling"
	reasonPulled  = "Pulled"
	reasonFailed  = "Failed"
)

var imageOfEvent = regexp.MustCompile(`image "([^"]+)"`)

// Pulls asks for the events of all namespaces.
func (c *Client) Pulls(ctx context.Context) (Pulls, error) {
	type pull struct {
		pod   types.UID
		image string
	}
	begun := map[pull]corev1.Event{}
	ended := map[pull]time.Time{}
	pulled := map[pull]bool{}
	for _, reason := range []string{reasonPulling, reasonPulled, reasonFailed} {
		list, err := c.Resource(Events).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", reason).String()})
		if err != nil {
			return Pulls{}, err
		}
		for _, item := range list.Items {
			var event corev1.Event
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &event); err != nil {
				return Pulls{}, err
			}
			named := imageOfEvent.FindStringSubmatch(event.Message)
			if named == nil {
				continue
			}
			one := pull{event.InvolvedObject.UID, named[1]}
			switch {
			case reason != reasonPulling:
				ended[one] = later(ended[one], event.LastTimestamp.Time)
				if reason == reasonPulled {
					pulled[one] = true
				}
			case event.LastTimestamp.After(begun[one].LastTimestamp.Time):
				begun[one] = event
			}
		}
	}
	var going []corev1.Event
	for one, event := range begun {
		if ended[one].Before(event.LastTimestamp.Time) {
			going = append(going, event)
		}
	}
	slices.SortFunc(going, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	pulls := Pulls{Pulled: len(pulled)}
	for _, event := range going {
		pulls.Going = append(pulls.Going, fmt.Sprintf("%s on %s", imageOfEvent.FindStringSubmatch(event.Message)[1], event.Source.Host))
	}
	return pulls, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
