package profile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Pulls are the pulls of one world. Its methods may be called at the same time.
type Pulls struct {
	profile Profile
	line    Line
	shared  bool // the line is

	mutex sync.Mutex
	first time.Time // of Docker Hub's images
}

// NewPulls makes a world's pulls.
func NewPulls(p Profile) *Pulls {
	line, shared := p.Uplink()
	return &Pulls{profile: p, line: line, shared: shared}
}

// Pull returns when the image is there, or with what the registry answers, as containerd tells it.
func (p *Pulls) Pull(ctx context.Context, image string) error {
	if err := p.refused(image); err != nil {
		return err
	}
	if p.shared {
		return p.line.Pull(ctx, image)
	}
	return p.profile.Sleep(ctx, p.profile.Delays.Pull(image))
}

// hub is how containerd writes images of Docker Hub.
const hub = "docker.io/"

// Full is an image's name with its registry, as containerd has it.
func Full(image string) string {
	if host, _, found := strings.Cut(image, "/"); !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return hub + image
	}
	return image
}

// refused is what a registry says in place of an image. The texts are those of containerd's resolver (core/remotes/docker of v2.1) and
// of Docker Hub.
func (p *Pulls) refused(image string) error {
	full := Full(image)
	if missing, has := p.profile.Faults[ImageMissing]; has && missing != "" && strings.Contains(image, missing) {
		return fmt.Errorf("failed to pull and unpack image %q: failed to resolve reference %[1]q: %[1]s: not found", full)
	}
	limit, has := p.profile.Faults.Duration(HubLimit, time.Minute)
	if !has || !strings.HasPrefix(full, hub) {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.first.IsZero() {
		p.first = time.Now()
	}
	if time.Since(p.first) > limit {
		return nil
	}
	return fmt.Errorf("failed to pull and unpack image %q: failed to copy: httpReadSeeker: failed open: unexpected status from GET request: 429 Too Many Requests: "+
		"toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit", full)
}
