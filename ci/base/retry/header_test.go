package retry

import (
	"net/http"
	"testing"
	"time"
)

func TestBothFormsOfTheHeaderAreRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]struct {
		wait time.Duration
		ok   bool
	}{
		"0":   {0, true},
		"1":   {time.Second, true},
		"120": {2 * time.Minute, true},
		now.Add(90 * time.Second).Format(http.TimeFormat): {90 * time.Second, true},
		now.Add(-time.Hour).Format(http.TimeFormat):       {0, true},
		"":     {0, false},
		"-1":   {0, false},
		"1.5":  {0, false},
		"soon": {0, false},
	} {
		if wait, ok := ParseAfter(header, now); wait != want.wait || ok != want.ok {
			t.Errorf("%q: %s %v, want %s %v", header, wait, ok, want.wait, want.ok)
		}
	}
}
