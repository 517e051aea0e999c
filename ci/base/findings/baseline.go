package findings

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"tazlab.net/castle/ci/base/rendering"
)

// Baseline are the findings that there were when it was written, counted by rule, cause and file. Lines are not in it: in a
// minified page a changed word moves everything. Nor are the hashes in names, which change with the content.
//
// Its file is JSON with sorted keys, a line for each file, so that a version control system shows what came and went.
type Baseline map[string]map[string]map[string]int

// hash is the part of a name that Hugo makes of the content: of fingerprinted assets and of processed images.
var hash = regexp.MustCompile(`[0-9a-f]{16,}`)

func withoutHash(name string) string { return hash.ReplaceAllString(name, "*") }

// Baseline is what the report found; findings that the options left out are not in it.
func (r Report) Baseline() Baseline {
	baseline := Baseline{}
	for _, finding := range r.Findings {
		cause, file := withoutHash(finding.Cause), withoutHash(finding.File)
		if baseline[finding.Rule] == nil {
			baseline[finding.Rule] = map[string]map[string]int{}
		}
		if baseline[finding.Rule][cause] == nil {
			baseline[finding.Rule][cause] = map[string]int{}
		}
		baseline[finding.Rule][cause][file]++
	}
	return baseline
}

// unknown are the findings beyond those the baseline holds, and the number of its entries of which there are fewer than it
// holds. Where a file has more of a kind than before, the last ones count as new: which they are cannot be told without lines.
func (b Baseline) unknown(findings []Finding) (unknown []Finding, gone int) {
	type key struct{ rule, cause, file string }
	left := map[key]int{}
	for rule, causes := range b {
		for cause, files := range causes {
			for file, count := range files {
				left[key{rule, cause, file}] = count
			}
		}
	}
	unknown = []Finding{}
	for _, finding := range findings {
		key := key{finding.Rule, withoutHash(finding.Cause), withoutHash(finding.File)}
		if left[key] > 0 {
			left[key]--
			continue
		}
		unknown = append(unknown, finding)
	}
	for _, count := range left {
		if count > 0 {
			gone++
		}
	}
	return unknown, gone
}

// ReadBaseline reads what Write wrote.
func ReadBaseline(name string) (Baseline, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	var baseline Baseline
	if err := json.Unmarshal(data, &baseline); err != nil {
		return nil, fmt.Errorf("%s is no baseline: %w; write it anew with --write-baseline", name, err)
	}
	return baseline, nil
}

// Write writes the baseline to a file.
func (b Baseline) Write(name string) error {
	text, err := rendering.JSON(b)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
