package talosnodes

import (
	"bytes"
	"errors"
	"fmt"
)

// What a certificate in PEM begins and ends with.
var (
	certificateBegins = []byte("-----BEGIN CERTIFICATE-----")
	certificateEnds   = []byte("-----END CERTIFICATE-----")
)

// between is how far a list's certificates are from each other at most: each has its authority's name before it.
const between = 512

// trust has machined believe in an authority alone: the list of authorities that Talos is built with stands in the program as it is in
// its source (internal/app/machined/pkg/controllers/secrets/trusted_roots.go of Talos 1.13), and another one takes its place. So what
// runs is Talos itself, and each world has an authority of its own.
func trust(machined, authority []byte) ([]byte, error) {
	from, to := authorities(machined)
	switch size := to - from; {
	case size == 0:
		return nil, errors.New("machined does not hold a list of authorities")
	case len(authority) > size:
		return nil, fmt.Errorf("the authority takes %d bytes, of which the list has %d", len(authority), size)
	default:
		trusting := bytes.Clone(machined)
		place := trusting[from:to]
		for i := range place[copy(place, authority):] {
			place[len(authority)+i] = '\n'
		}
		return trusting, nil
	}
}

// authorities is where the longest list of certificates stands in a program. The program has others, of a few.
func authorities(program []byte) (from, to int) {
	begin, end := 0, 0 // of the list that is being read
	for at := 0; ; {
		next := bytes.Index(program[at:], certificateBegins)
		if next < 0 {
			return from, to
		}
		next += at
		at = next + len(certificateBegins)
		length := bytes.Index(program[at:], certificateEnds)
		if length < 0 {
			return from, to
		}
		if bytes.Contains(program[at:at+length], certificateBegins) {
			continue // these are words of the program alone
		}
		at += length + len(certificateEnds)
		if end == 0 || next-end > between {
			begin = next
		}
		end = at
		if end-begin > to-from {
			from, to = begin, end
		}
	}
}
