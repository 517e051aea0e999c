package talosnodes

import (
	"bytes"
	"errors"
	"fmt"
)

// trust has machined believe in an authority alone: the list of authorities that Talos is built with stands in the program as it is in
// its source (internal/app/machined/pkg/controllers/secrets/trusted_roots.go of Talos 1.13), and another one takes its place. So what is
// built is Talos itself, and each world has an authority of its own.
func trust(machined, list, authority []byte) ([]byte, error) {
	switch at := bytes.Index(machined, list); {
	case len(list) == 0 || at < 0:
		return nil, errors.New("machined does not hold the list of authorities that was built with it")
	case len(authority) > len(list):
		return nil, fmt.Errorf("the authority takes %d bytes, of which the list has %d", len(authority), len(list))
	default:
		trusting := bytes.Clone(machined)
		place := trusting[at : at+len(list)]
		for i := range place[copy(place, authority):] {
			place[len(authority)+i] = '\n'
		}
		return trusting, nil
	}
}
