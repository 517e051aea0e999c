package kube

import "testing"

func TestOneImageHasSeveralNames(t *testing.T) {
	const digest = "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	for _, test := range []struct {
		has, wanted string
		same        bool
	}{
		{"docker.io/tazzo/blog:1", "tazzo/blog:1", true},
		{"tazzo/blog:1", "index.docker.io/tazzo/blog:1", true},
		{"tazzo/blog:1" + digest, "tazzo/blog:1" + digest, true},
		{"tazzo/blog:1", "tazzo/blog:2", false},
		{"tazzo/blog:1", "quay.io/tazzo/blog:1", false},
		{"tazzo/blog:1", "tazzo/blog:1" + digest, false},
		{"", "tazzo/blog:1", false},
	} {
		if HasImage([]string{"sidecar:1", test.has}, test.wanted) != test.same {
			t.Errorf("%q and %q: same is not %v", test.has, test.wanted, test.same)
		}
	}
}
