package timeline

import (
	"encoding/json"
	"fmt"
	"time"
)

// Seconds is a length of time that JSON has as a number of seconds.
type Seconds time.Duration

// MarshalJSON gives seconds with milliseconds: 12.345.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(s).Round(time.Millisecond).Milliseconds()) / 1000)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return err
	}
	*s = Seconds(seconds * float64(time.Second))
	return nil
}

func (s Seconds) String() string { return short(time.Duration(s)) }

// short is a length of time for a person: "0.3 s", "12 s", "1 m 53 s", "1 h 2 m".
func short(d time.Duration) string {
	d = max(d, 0)
	switch whole := d.Round(time.Second); {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case whole < time.Minute:
		return fmt.Sprintf("%d s", int(whole.Seconds()))
	case whole < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(whole.Minutes()), int(whole.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d m", int(whole.Hours()), int(whole.Minutes())%60)
	}
}

// precise is a time since the start in a column: "12.3s", "1m53.4s".
func precise(d time.Duration) string {
	tenths := d.Round(100*time.Millisecond).Milliseconds() / 100
	if tenths < 600 {
		return fmt.Sprintf("%d.%ds", tenths/10, tenths%10)
	}
	return fmt.Sprintf("%dm%02d.%ds", tenths/600, tenths%600/10, tenths%10)
}
