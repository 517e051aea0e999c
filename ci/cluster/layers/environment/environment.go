// Package environment hands to the programs that Terragrunt starts what no other layer's programs may see. A
// process's environment can be read through /proc by its children and by every process of the same user, and
// Terragrunt is the ancestor of all layers' providers: so Terragrunt gets no secret, and its direct children ask for
// theirs at a socket, each for its layer.
//
// Who asks is known from the kernel: a peer is answered if Terragrunt is its parent and nobody traces it. That is
// castle's own program in the place of OpenTofu (Exec), which becomes OpenTofu once it has the layer's variables. Until
// then the run does what goes before the command. Providers, and what they start, have another parent.
package environment

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Variables that Terragrunt and its direct children have.
const (
	VariableSocket = "CASTLE_ENVIRONMENT" // where to ask
	VariableTool   = "CASTLE_TOOL"        // the path of the program that Exec becomes: OpenTofu or Terraform
	VariableLayer  = "CASTLE_LAYER"       // set by root.hcl for the layer's tool
)

// Request is for what the tool of one layer gets.
type Request struct {
	Layer   string `json:"layer"`
	Command string `json:"command"` // of the tool: "apply"
	Folder  string `json:"folder"`  // that it runs in
}

// Source gives the variables that a request is answered with, "NAME=value". The tool starts when it has returned.
type Source func(Request) ([]string, error)

// Server answers the children of one process.
type Server struct {
	source   Source
	listener *net.UnixListener
	served   sync.WaitGroup
	started  chan struct{} // closed once parent is known
	parent   int
}

// Serve listens at a new socket. Nobody is answered before Admit.
func Serve(source Source) (*Server, error) {
	// An abstract socket: a path could be longer than sockets allow. Its name is no secret.
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@castle-" + rand.Text(), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the layers' programs: %w", err)
	}
	s := &Server{source: source, listener: listener, started: make(chan struct{})}
	s.served.Go(func() {
		for {
			connection, err := listener.AcceptUnix()
			if err != nil {
				return // closed
			}
			s.served.Go(func() { s.answer(connection) })
		}
	})
	return s, nil
}

// Address is the value of VariableSocket.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Admit answers a process and its direct children from now on. It is called once.
func (s *Server) Admit(parent int) {
	s.parent = parent
	close(s.started)
}

// Close ends the server.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.served.Wait()
}

// askTime bounds what a question and its answer need on their way. How long the answer takes is up to who gives it; where that process has
// ended, so has the connection.
const askTime = 10 * time.Second

type response struct {
	Variables []string `json:"variables"`
	Refused   string   `json:"refused,omitempty"`
}

func (s *Server) answer(connection *net.UnixConn) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(askTime))
	var request Request
	if err := json.NewDecoder(io.LimitReader(connection, 1<<14)).Decode(&request); err != nil {
		return
	}
	var answer response
	err := s.admitted(connection)
	if err == nil {
		answer.Variables, err = s.source(request)
	}
	if err != nil {
		answer.Refused = err.Error()
	}
	_ = connection.SetDeadline(time.Now().Add(askTime))
	_ = json.NewEncoder(connection).Encode(answer)
}

func (s *Server) admitted(connection *net.UnixConn) error {
	select {
	case <-s.started:
	case <-time.After(askTime):
		return errors.New("castle has not started Terragrunt")
	}
	peer, err := peerOf(connection)
	switch {
	case err != nil:
		return fmt.Errorf("who asks cannot be found out: %w", err)
	case peer.parent != s.parent && peer.pid != s.parent:
		return errors.New("only programs that Terragrunt itself starts get the secrets of a layer")
	case peer.tracer != 0:
		return fmt.Errorf("process %d traces the program that asks", peer.tracer)
	}
	return nil
}

// peer is the process at the other end.
type peer struct{ pid, parent, tracer int }

// Ask asks for a layer's variables. Without a socket it returns none: plain Terragrunt gives its children all that
// they need.
func Ask(request Request) ([]string, error) {
	address := os.Getenv(VariableSocket)
	if address == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("ask castle for the variables of layer %s: %w", request.Layer, err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(askTime))
	var answer response
	if err := json.NewEncoder(connection).Encode(request); err != nil {
		return nil, fmt.Errorf("ask castle for the variables of layer %s: %w", request.Layer, err)
	}
	_ = connection.SetDeadline(time.Time{})
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return nil, fmt.Errorf("ask castle for the variables of layer %s: %w", request.Layer, err)
	}
	if answer.Refused != "" {
		return nil, fmt.Errorf("castle refuses the variables of layer %s: %s", request.Layer, answer.Refused)
	}
	return answer.Variables, nil
}

// IsTool tells whether this process was started in the place of OpenTofu.
func IsTool() bool {
	tool := os.Getenv(VariableTool)
	return tool != "" && filepath.Base(os.Args[0]) == filepath.Base(tool)
}

// own are the variables that nobody needs below the tool.
var own = []string{VariableSocket, VariableTool, VariableLayer}

// Exec replaces this process by OpenTofu with its layer's variables. It returns only an error. Without a layer, as
// where Terragrunt asks for the version, there are none.
func Exec() error {
	tool := os.Getenv(VariableTool)
	variables := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(own, name)
	})
	if layer := os.Getenv(VariableLayer); layer != "" {
		folder, err := os.Getwd()
		if err != nil {
			return err
		}
		request := Request{Layer: layer, Folder: folder}
		if len(os.Args) > 1 {
			request.Command = os.Args[1]
		}
		more, err := Ask(request)
		if err != nil {
			return err
		}
		variables = append(variables, more...)
	}
	return fmt.Errorf("run %s: %w", tool, syscall.Exec(tool, append([]string{tool}, os.Args[1:]...), variables))
}
