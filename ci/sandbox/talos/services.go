package talos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// services are a machine's services with the history of each, and what Talos writes into its log of them and of calls.
type services struct {
	known map[string]*service
	text  []byte
}

type service struct {
	state  string
	events []*machineapi.ServiceEvent
}

const (
	eventsKept = 64
	// A log holds that much, and forgets its oldest part at a time: internal/app/machined/pkg/runtime/logging/circular.go of Talos 1.13.
	logKept, logPart = 1 << 20, 64 << 10
)

func (s *services) set(id, state, message string) {
	known := s.known[id]
	if known == nil {
		known = &service{}
		if s.known == nil {
			s.known = map[string]*service{}
		}
		s.known[id] = known
	}
	known.state = state
	known.events = append(known.events, &machineapi.ServiceEvent{Msg: message, State: state, Ts: timestamppb.New(time.Now())})
	if len(known.events) > eventsKept {
		known.events = known.events[1:]
	}
	s.note(fmt.Sprintf("service[%s](%s): %s", id, state, message))
}

// anew forgets a service's history, as Talos does where it loads another one in its place (BootstrapEtcd in
// internal/app/machined/pkg/system/services/etcd.go of Talos 1.13).
func (s *services) anew(id string) { delete(s.known, id) }

// has tells whether a service was started.
func (s *services) has(id string) bool { return s.known[id] != nil }

// note writes a line into the log.
func (s *services) note(line string) { s.write("[talos] " + line) }

// call writes what a call leaves there: three lines, of which a real machine's of Talos 1.13.9 were copied.
func (s *services) call(method string) {
	s.write(`machined/authz/unix/authorizer authorized based on PID (59) match with service "apid" (allowed roles [os:admin os:etcd:backup os:image:verifier os:impersonator os:meta:writer os:operator os:reader])`)
	s.write("machined/authz/authorizer authorized ([os:admin os:etcd:backup os:operator os:reader] includes [os:admin])")
	s.write("machined OK [" + method + "] 1ms unary Success (:authority=localhost;content-type=application/grpc+proxy>proto;grpc-accept-encoding=gzip,gzip;runtime=Talos;talos-role=os:admin;user-agent=grpc-go/1.82.1)")
}

func (s *services) write(line string) {
	s.text = append(s.text, line+"\n"...)
	if len(s.text) > logKept {
		s.text = slices.Clone(s.text[logPart:])
	}
}

// list is the API's answer. unhealthy names services whose health check fails now, and why.
func (s *services) list(unhealthy map[string]string) []*machineapi.ServiceInfo {
	var list []*machineapi.ServiceInfo
	for id, known := range s.known {
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
