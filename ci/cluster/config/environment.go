package config

import (
	"encoding/json"
	"fmt"
)

// Variable is the environment variable by which a run hands the completed description to the layers' units and their hooks,
// as JSON on one line.
const Variable = "CASTLE_DESCRIPTION"

// Handed reads the value of Variable. The run has checked it, so that nothing is checked again.
func Handed(value string) (*Cluster, error) {
	var c Cluster
	if err := json.Unmarshal([]byte(value), &c); err != nil {
		return nil, fmt.Errorf("%s is not a description: %w", Variable, err)
	}
	return &c, nil
}

// HandOver is the value of Variable.
func (c *Cluster) HandOver() (string, error) {
	value, err := json.Marshal(c)
	return string(value), err
}
