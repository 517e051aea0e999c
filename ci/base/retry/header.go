package retry

import (
	"net/http"
	"strconv"
	"time"
)

// ParseAfter reads the value of a Retry-After header, which is a number of seconds or a date (RFC 9110, section 10.2.3), as the
// time to wait from now on: 0 for a date that is over. It is not ok where the header is missing or makes no sense.
func ParseAfter(header string, now time.Time) (wait time.Duration, ok bool) {
	if seconds, err := strconv.Atoi(header); err == nil {
		if seconds < 0 {
			return 0, false
		}
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}
