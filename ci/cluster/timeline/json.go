package timeline

import (
	"encoding/json"
	"fmt"
)

// JSON is the time line for programs; all times are seconds since the run's start.
func (t Timeline) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the time line as JSON: %w", err)
	}
	return append(data, '\n'), nil
}
