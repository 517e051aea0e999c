package infisical

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// moods refuses requests: above the rate limit, and the first ones of every operation where the fault infisical-moods
// is wanted, by turns with 429 and 500. Counting by operation lets a client that starts over from its login get through.
type moods struct {
	perMinute int
	wanted    int

	mu     sync.Mutex
	window time.Time // start of the minute that is counted
	count  int
	spent  map[string]int // operation: refusals given
}

// A client tries again some times and gives up; two refusals are what it has to bear.
const defaultMoods = 2

func newMoods(perMinute int, faults profile.Faults) *moods {
	return &moods{perMinute: perMinute, wanted: faults.Count(profile.InfisicalMoods, defaultMoods), spent: map[string]int{}}
}

// refuse gives the refusal of this request, nil for most. It sets the headers that belong to it.
func (m *moods) refuse(operation string, header http.Header) *refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	if spent := m.spent[operation]; spent < m.wanted {
		m.spent[operation]++
		if spent%2 == 0 {
			return limited(header, time.Second)
		}
		return &refusal{http.StatusInternalServerError, "InternalServerError", "Something went wrong"}
	}
	if m.perMinute == 0 {
		return nil
	}
	if time.Since(m.window) >= time.Minute {
		m.window, m.count = time.Now(), 0
	}
	m.count++
	header.Set("X-Ratelimit-Limit", strconv.Itoa(m.perMinute))
	header.Set("X-Ratelimit-Remaining", strconv.Itoa(max(0, m.perMinute-m.count)))
	if m.count <= m.perMinute {
		return nil
	}
	return limited(header, time.Until(m.window.Add(time.Minute)))
}

func limited(header http.Header, wait time.Duration) *refusal {
	seconds := int(math.Ceil(wait.Seconds()))
	header.Set("Retry-After", strconv.Itoa(seconds))
	return &refusal{http.StatusTooManyRequests, "RateLimitExceeded", fmt.Sprintf("Rate limit exceeded. Please try again in %d seconds", seconds)}
}
