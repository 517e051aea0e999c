package profile

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Two images of 12 MiB through a line of 192 MiB a second take an eighth of a second together, whoever comes first.
func TestPullsShareOneLine(t *testing.T) {
	line, has := Profile{Scale: 0.01, Faults: Faults{Uplink: "16.1061Mbit"}}.Uplink()
	if !has {
		t.Fatal("there is no line")
	}
	began := time.Now()
	var pulls sync.WaitGroup
	for range 2 {
		pulls.Go(func() {
			if err := line.Pull(t.Context(), "registry.k8s.io/sig-storage/livenessprobe:v2"); err != nil {
				t.Error(err)
			}
		})
	}
	pulls.Wait()
	if took := time.Since(began); took < 110*time.Millisecond {
		t.Errorf("24 MiB were there after %s", took)
	}
}

func TestAWorldWithoutDelaysHasALineWithoutAnEnd(t *testing.T) {
	line, has := Profile{Faults: Faults{Uplink: "16Mbit"}}.Uplink()
	if err := line.Pull(t.Context(), "longhornio/longhorn-engine:v1"); !has || err != nil {
		t.Error(has, err)
	}
	if _, has := (Profile{}).Uplink(); has {
		t.Error("a world without the fault has the line")
	}
}

func TestAWidthThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{"uplink", "uplink=16", "uplink=-1Mbit", "uplink=0Mbit", "uplink=fastMbit"} {
		if _, err := ParseFaults([]string{text}); err == nil || !strings.Contains(err.Error(), "uplink=16Mbit") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
