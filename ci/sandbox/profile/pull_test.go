package profile

import (
	"strings"
	"testing"
	"time"
)

func pulls(t *testing.T, faults ...string) *Pulls {
	t.Helper()
	parsed, err := ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(NameNone, 1, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return NewPulls(p)
}

func TestDockerHubRefusesForAWhile(t *testing.T) {
	p := pulls(t, HubLimit+"=200ms")
	for image, refused := range map[string]bool{
		"longhornio/longhorn-manager:v1": true, "docker.io/library/nginx:1": true, "nginx": true, "quay.io/metallb/controller:v1": false, "192.168.77.13:5000/blog:1": false,
		"localhost/blog": false,
	} {
		err := p.Pull(t.Context(), image)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "toomanyrequests") {
			t.Errorf("%s: %v", image, err)
		}
	}
	time.Sleep(250 * time.Millisecond)
	if err := p.Pull(t.Context(), "nginx"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAnImageThatDoesNotExistIsNeverPulled(t *testing.T) {
	p := pulls(t, ImageMissing+"=metallb/speaker")
	if err := p.Pull(t.Context(), "quay.io/metallb/speaker:v0.15.2"); err == nil || !strings.Contains(err.Error(), "quay.io/metallb/speaker:v0.15.2: not found") {
		t.Error(err)
	}
	if err := p.Pull(t.Context(), "quay.io/metallb/controller:v0.15.2"); err != nil {
		t.Error(err)
	}
}
