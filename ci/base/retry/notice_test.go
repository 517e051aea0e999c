package retry

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestANoticeSaysWhatFailedHowOftenWhenItIsTriedAgainAndWhenItGivesUp(t *testing.T) {
	var said strings.Builder
	Say(To(t.Context(), &said), Notice{Doing: "blob a", Attempts: 2, Seen: "502", Pause: time.Millisecond, Until: time.Now().Add(4 * time.Minute)})
	want := regexp.MustCompile(`^blob a failed at attempt 2: 502; trying again in 0s, giving up at \d\d:\d\d:\d\d UTC \(in 4m0s\)\n$`)
	if !want.MatchString(said.String()) {
		t.Errorf("got %q", said.String())
	}
	Say(t.Context(), Notice{}) // nobody listens
}
