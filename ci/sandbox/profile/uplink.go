package profile

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/time/rate"

	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// mebibytes are the compressed sizes of images, by a text in their names; the first match counts. No registry can be asked where this was
// written: they are estimates, rounded, of linux/amd64 in the versions of 2025.
var mebibytes = []struct {
	contains string
	size     int64
}{
	{"longhorn-instance-manager", 330}, {"longhorn-engine", 310}, {"longhorn-share-manager", 110}, {"backing-image-manager", 110},
	{"longhorn-manager", 130}, {"longhorn-ui", 75}, {"csi-", 30}, {"livenessprobe", 12},
	{"metallb/speaker", 50}, {"metallb/controller", 30}, {"frr", 55},
	{"external-secrets", 75}, {"helm-controller", 40}, {"kustomize-controller", 45}, {"source-controller", 50}, {"notification-controller", 25},
	{machineconfig.PauseImage, 0}, // each node has it
	{"etcd", 22}, {"kube-apiserver", 28}, {"kube-controller-manager", 25}, {"kube-scheduler", 20}, {"siderolabs/kubelet", 105},
	{"kube-proxy", 30}, {"siderolabs/flannel", 32}, {"coredns", 20},
}

// otherMebibytes is the size of any other image.
const otherMebibytes = 40

// Line is a way out that pulls share, each getting what the others leave. The zero value is none.
type Line struct{ limiter *rate.Limiter }

// chunk is what one pull takes of the line before it is the next one's turn.
const chunk = 64 << 10

// Uplink is the line of the fault of that name; none, and false, without it. A world that goes faster has a line that is as much wider.
func (p Profile) Uplink() (Line, bool) {
	width, err := ParseWidth(p.Faults[Uplink])
	if err != nil {
		return Line{}, false
	}
	limit := rate.Inf
	if p.Scale > 0 {
		limit = rate.Limit(width / 8 / p.Scale)
	}
	return Line{rate.NewLimiter(limit, chunk)}, true
}

// Pull returns when the image has come through the line.
func (l Line) Pull(ctx context.Context, image string) error {
	for left := ImageSize(image); left > 0; left -= chunk {
		if err := l.limiter.WaitN(ctx, int(min(left, chunk))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ImageSize is what a node pulls of an image, in bytes.
func ImageSize(image string) int64 {
	for _, known := range mebibytes {
		if strings.Contains(image, known.contains) {
			return known.size << 20
		}
	}
	return otherMebibytes << 20
}

// ParseWidth reads "16Mbit", in bits a second.
func ParseWidth(text string) (float64, error) {
	number, unit := strings.CutSuffix(text, "Mbit")
	width, err := strconv.ParseFloat(number, 64)
	if !unit || err != nil || width <= 0 {
		return 0, fmt.Errorf("fault %s=%s: write the width of the line as %s=16Mbit", Uplink, text, Uplink)
	}
	return width * 1e6, nil
}
