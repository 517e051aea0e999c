package run

import (
	"context"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/description"
)

// TestLocalStatesOfARealClusterAreAccepted: nothing is begun where nobody has.
func TestLocalStatesOfARealClusterAreAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		platform, backend string
		accepted          bool
		refused           bool
	}{
		"a real one's in the volume": {platform: description.PlatformProxmox, backend: description.StateLocal, refused: true},
		"accepted":                   {platform: description.PlatformProxmox, backend: description.StateLocal, accepted: true},
		"in S3":                      {platform: description.PlatformProxmox, backend: description.StateS3},
		"a sandbox's":                {platform: description.PlatformSandbox, backend: description.StateLocal},
	} {
		t.Run(name, func(t *testing.T) {
			described := &description.Cluster{Name: "blue", Platform: test.platform, State: description.State{Backend: test.backend}}
			cluster := &Cluster{State: t.TempDir(), Out: t.Output(), Description: described, LocalStates: test.accepted}
			began := false
			_, err := cluster.Execute(t.Context(), "create", func(context.Context, *Record) error {
				began = true
				return nil
			})
			if began == test.refused || test.refused != (err != nil) {
				t.Fatalf("began: %t, %v", began, err)
			}
			if test.refused && (!strings.Contains(err.Error(), "dagger call --state local") || !strings.Contains(err.Error(), "write backend s3")) {
				t.Errorf("it is refused without the way out: %v", err)
			}
		})
	}
}
