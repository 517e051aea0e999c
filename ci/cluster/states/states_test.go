package states

import (
	"strings"
	"testing"
	"time"
)

func TestWhatAPersonReadsOfTheStates(t *testing.T) {
	s := States{Cluster: "blue", Backend: "s3",
		Layers: []Layer{
			{Name: "secrets", Resources: []string{"terraform_data.inventory"}, Copies: []string{"20260102T120300.000Z", "20260102T121200.000Z"}},
			{Name: "platform", Resources: []string{}},
			{Name: "engine"},
			{Name: "networking", Problem: "read the state of layer networking: no"},
		},
		Locks: []Lock{
			{ID: "AB", Who: "process 7 on runner", Doing: "create", Since: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)},
			{ID: "cd-ef", Layer: "platform", Who: "root@runner", Doing: "OperationTypeApply", Since: time.Date(2026, 1, 2, 12, 1, 0, 0, time.UTC)},
		}}
	want := strings.TrimPrefix(`
states of cluster blue (s3)

  secrets     1 resource, 2 copies from 20260102T120300.000Z to 20260102T121200.000Z
  platform    0 resources
  engine      no state
  networking  read the state of layer networking: no

the cluster is locked by create of process 7 on runner since 2026-01-02 12:00:00 UTC (ID AB)
the state of layer platform is locked by OperationTypeApply of root@runner since 2026-01-02 12:01:00 UTC (ID cd-ef)
`, "\n")
	if got := s.Text(); got != want {
		t.Errorf("got\n%s", got)
	}
}
