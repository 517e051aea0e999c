package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
)

// TestLocalStatesOfARealClusterAreAccepted: nothing is begun where nobody has.
func TestLocalStatesOfARealClusterAreAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		platform, backend string
		accepted          bool
		refused           bool
	}{
		"a real one's in the volume": {platform: config.PlatformProxmox, backend: config.StateLocal, refused: true},
		"accepted":                   {platform: config.PlatformProxmox, backend: config.StateLocal, accepted: true},
		"in S3":                      {platform: config.PlatformProxmox, backend: config.StateS3},
		"a sandbox's":                {platform: config.PlatformSandbox, backend: config.StateLocal},
	} {
		t.Run(name, func(t *testing.T) {
			described := &config.Cluster{Name: "blue", Platform: test.platform, State: config.State{Backend: test.backend}}
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

// Layers that an older castle ejected would run without their secrets, or do castle's part a second time.
func TestLayersOfAnOlderCastleAreRefusedWithWhatToChange(t *testing.T) {
	today, err := os.ReadFile(filepath.Join(layersFolder, "root.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	hook := "\nterraform {\n  after_hook \"gate\" {\n    commands = [\"apply\"]\n    execute  = [%s, \"wait\", local.layer]\n  }\n}\n"
	for name, c := range map[string]struct{ root, says string }{
		"today's":              {string(today), ""},
		"a hook of one's own":  {string(today) + strings.Replace(hook, "%s", `"./notify.sh"`, 1), ""},
		"no name of the layer": {strings.ReplaceAll(string(today), "CASTLE_LAYER", "LAYER"), `extra_arguments "layer"`},
		"castle's hooks":       {string(today) + strings.Replace(hook, "%s", `"castle-cluster"`, 1), "remove from its block terraform"},
		"the first hook":       {string(today) + "\n    execute = concat([\"castle-cluster\", \"layer\", \"start\"],\n", "before_hook"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "root.hcl"), []byte(c.root), 0o600); err != nil {
			t.Fatal(err)
		}
		err := (&Cluster{Layers: folder}).layersFit()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
