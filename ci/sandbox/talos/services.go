package talos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// services are a machine's services with the history of each.
type services map[string]*service

type service struct {
	state  string
	events []*machineapi.ServiceEvent
	notes  []string // what Talos writes of it into its log, beside its events
}

const eventsKept = 64

func (s services) set(id, state, message string) {
	known := s[id]
	if known == nil {
		known = &service{}
		s[id] = known
	}
	known.state = state
	known.events = append(known.events, &machineapi.ServiceEvent{Msg: message, State: state, Ts: timestamppb.New(time.Now())})
	if len(known.events) > eventsKept {
		known.events = known.events[1:]
	}
}

func (s services) note(id, text string) { s[id].notes = append(s[id].notes, text) }

// list is the API's answer. unhealthy names services whose health check fails now, and why.
func (s services) list(unhealthy map[string]string) []*machineapi.ServiceInfo {
	var list []*machineapi.ServiceInfo
	for id, known := range s {
		health := &machineapi.ServiceHealth{Unknown: true}
		if known.state == "Running" && id != "machined" && id != "udevd" {
			health = &machineapi.ServiceHealth{Healthy: true}
			if why := unhealthy[id]; why != "" {
				health = &machineapi.ServiceHealth{LastMessage: why}
			}
		}
		list = append(list, &machineapi.ServiceInfo{Id: id, State: known.state, Health: health,
			Events: &machineapi.ServiceEvents{Events: slices.Clone(known.events)}})
	}
	slices.SortFunc(list, func(a, b *machineapi.ServiceInfo) int { return strings.Compare(a.GetId(), b.GetId()) })
	return list
}

// log is what Talos notes of its services.
func (s services) log() string {
	var log strings.Builder
	for id, known := range s {
		for _, event := range known.events {
			fmt.Fprintf(&log, "[talos] service[%s](%s): %s\n", id, event.GetState(), event.GetMsg())
		}
		for _, note := range known.notes {
			fmt.Fprintf(&log, "[talos] %s\n", note)
		}
	}
	return log.String()
}
