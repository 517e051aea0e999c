package terragrunt

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Results of a unit, in Terragrunt's words.
const (
	Succeeded = "succeeded"
	FailedRun = "failed"
	EarlyExit = "early exit" // not run, since one that it depends on failed
)

// Report is Terragrunt's report, a row for each unit.
type Report []Unit

// Unit is one row.
type Unit struct {
	Name    string    `json:"Name"`
	Started time.Time `json:"Started"`
	Ended   time.Time `json:"Ended"`
	Result  string    `json:"Result"`
	Reason  string    `json:"Reason"` // "run error", "ancestor error", …
	Cause   string    `json:"Cause"`  // the ancestor, or the error's text
}

// Failed says that units failed. Of units that are destroyed and others that are left out, Terragrunt 1.1 reports even the one that failed as
// an early exit, so that there may be none in the report.
type Failed struct {
	Report Report
	err    error
}

func (f *Failed) Error() string {
	var names []string
	for _, unit := range f.Report.failed() {
		names = append(names, unit.Name)
	}
	if names == nil {
		return f.err.Error()
	}
	return "failed: " + strings.Join(names, ", ")
}

func (f *Failed) Unwrap() error { return f.err }

func (r Report) failed() []Unit {
	var failed []Unit
	for _, unit := range r {
		if unit.Result == FailedRun {
			failed = append(failed, unit)
		}
	}
	return failed
}

func readReport(name string) (Report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("terragrunt left no report: %w", err)
	}
	var report Report
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("terragrunt's report: %w", err)
	}
	for i := range report {
		report[i].Name = filepath.Base(report[i].Name)
	}
	return report, nil
}
