package kube

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Pulls are the images that the nodes pull for pods, as the kubelets' events tell.
type Pulls struct {
	Going   []string // "IMAGE on NODE", the longest first
	Refused []string // "IMAGE on NODE: what the registry answers", of those that are asked for again; the last one first
	Pulled  int      // how many have arrived; events are kept for an hour
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
	refused := map[pull]corev1.Event{}
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
				switch {
				case reason == reasonPulled:
					pulled[one] = true
				case !event.LastTimestamp.Before(new(refused[one].LastTimestamp)):
					refused[one] = event
				}
			case event.LastTimestamp.After(begun[one].LastTimestamp.Time):
				begun[one] = event
			}
		}
	}
	pulls := Pulls{Pulled: len(pulled)}
	var going, failed []corev1.Event
	for one, event := range begun {
		if ended[one].Before(event.LastTimestamp.Time) {
			going = append(going, event)
		}
	}
	for one, event := range refused {
		if !pulled[one] {
			failed = append(failed, event)
		}
	}
	slices.SortFunc(going, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	slices.SortFunc(failed, func(a, b corev1.Event) int { return b.LastTimestamp.Compare(a.LastTimestamp.Time) })
	for _, event := range going {
		pulls.Going = append(pulls.Going, onNode(event))
	}
	for _, event := range failed {
		_, why, _ := strings.Cut(event.Message, `": `)
		pulls.Refused = append(pulls.Refused, onNode(event)+": "+inShort(why))
	}
	return pulls, nil
}

// onNode is the image of an event, and where.
func onNode(event corev1.Event) string {
	return imageOfEvent.FindStringSubmatch(event.Message)[1] + " on " + event.Source.Host
}

var httpStatus = regexp.MustCompile(`\b[45]\d\d [A-Z].*`)

// inShort is the end of what containerd says, which begins with the image's name and its own steps: the answer of the registry, where it has
// given one.
func inShort(why string) string {
	if answer := httpStatus.FindString(why); answer != "" {
		return answer
	}
	parts := strings.Split(why, ": ")
	return strings.Join(parts[max(0, len(parts)-2):], ": ")
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
