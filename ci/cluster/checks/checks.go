// Package checks looks at everything that a cluster is made with and on, before anything is changed: engine,
// tools, secrets, Proxmox, addresses, clocks, the GitOps repository, the images' registry, the store of the
// states. Nothing that it asks changes anything, but for an object that it writes into the store of the states and
// removes again.
//
// A check is a row of the table. All run at the same time and each has a deadline of its own. What one has to know that another one finds out
// is asked for once (sight.go), and where it cannot be had the row says so instead of failing a second time.
package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
)

// Verdict is what a row comes to.
type Verdict string

// Verdicts. Only a failed row keeps a cluster from being created.
const (
	OK         Verdict = "ok"
	Warning    Verdict = "warning"
	Failed     Verdict = "failed"
	NotChecked Verdict = "not checked"
)

// Row is one thing that was looked at. A check that finds several things wrong has a row for each.
type Row struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Seen    string  `json:"seen"`          // one line; of a row that was not checked, why
	Fix     string  `json:"fix,omitempty"` // what to type or do; of a warning and a failed row only
}

// finding is a row without the names of its check.
type finding struct {
	verdict   Verdict
	seen, fix string
}

func ok(format string, arguments ...any) []finding {
	return []finding{{OK, fmt.Sprintf(format, arguments...), ""}}
}

func notChecked(format string, arguments ...any) []finding {
	return []finding{{NotChecked, fmt.Sprintf(format, arguments...), ""}}
}

// check is one row of the table, or several where it finds several things.
type check struct {
	group, name string
	// blocking says that create runs it, too, and does not begin where it fails. The others say what create finds out by itself before it
	// changes anything, or what it does not need.
	blocking bool
	// guard says that create does not begin either where it could not be made: it keeps what is somebody else's from
	// harm.
	guard bool
	// late says that it needs the secrets of Infisical: its deadline begins when they are there.
	late bool
	look func(context.Context, *sight) []finding
}

// Groups of rows.
const (
	groupEngine   = "engine"
	groupTools    = "tools"
	groupSecrets  = "secrets"
	groupProxmox  = "Proxmox"
	groupNetwork  = "network"
	groupGitOps   = "GitOps"
	groupRegistry = "registry"
	groupStates   = "states"
)

// Rows that others are told apart from.
const (
	rowIDs       = "VM ids"
	rowAddresses = "addresses"
)

// table is in the order in which a person mends things.
var table = []check{
	{group: groupEngine, name: "version", look: version},
	{group: groupEngine, name: "disk", blocking: true, look: disk},
	{group: groupTools, name: "programs", blocking: true, look: programs},
	{group: groupSecrets, name: "SOPS files", look: openFiles},
	{group: groupSecrets, name: "Infisical", look: readInfisical},
	{group: groupSecrets, name: "complete", look: complete},
	{group: groupSecrets, name: "identities", late: true, look: identities},
	{group: groupProxmox, name: "certificate", blocking: true, look: certificate},
	{group: groupProxmox, name: "token", blocking: true, look: token},
	{group: groupProxmox, name: "privileges", blocking: true, look: privileges},
	{group: groupProxmox, name: "hosts", blocking: true, look: hosts},
	{group: groupProxmox, name: "storage", blocking: true, look: storage},
	{group: groupProxmox, name: "bridge", blocking: true, look: bridge},
	{group: groupProxmox, name: "template", blocking: true, look: template},
	{group: groupProxmox, name: rowIDs, blocking: true, guard: true, look: ids},
	{group: groupNetwork, name: "names", look: names},
	{group: groupNetwork, name: rowAddresses, blocking: true, guard: true, look: addresses},
	{group: groupNetwork, name: "machines", look: machinesAnswer},
	{group: groupNetwork, name: "clocks", blocking: true, look: clocks},
	{group: groupGitOps, name: "readable", blocking: true, late: true, look: readable},
	{group: groupGitOps, name: "writable", late: true, look: writable},
	{group: groupRegistry, name: "images", look: images},
	{group: groupStates, name: "store", blocking: true, look: store},
}

const (
	// lookTime is how long a check may take that a person waits for.
	lookTime = 4 * time.Second
	// createTime is how long one may take before a create: what is only slow must not keep it from beginning.
	createTime = 20 * time.Second
	// allTime is how long a person waits for all rows.
	allTime = 4800 * time.Millisecond
	// grace is how long a check may go on that does not look at its deadline.
	grace = 200 * time.Millisecond
)

// Asked is what no description of a cluster says, and a doctor looks at besides. All of it may be left out.
type Asked struct {
	// PushToken is what publishing pushes to the GitOps repository with; without it the cluster's own is tried.
	PushToken string
	// Engine is the version of the Dagger engine that runs this, MadeFor the one that castle was made for: "v0.19.10".
	Engine, MadeFor string
	// Images are the repositories that the sites beside the cluster are published to. MayPush asks whether somebody may push there, or
	// where nobody is known who would (Anonymous), whether the registry answers.
	Images    []string
	MayPush   func(ctx context.Context, image string) error
	Anonymous bool
}

// All runs every check. It needs what Load has read.
func All(ctx context.Context, cluster *run.Cluster, asked Asked) []Row {
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	s := newSight(ctx, cluster, lookTime)
	defer s.close()
	s.asked = asked
	s.openSources(ctx)
	return s.run(ctx, s.table())
}

// table are the rows of a cluster: there is no Proxmox to ask where castle makes no machines.
func (s *sight) table() []check {
	return slices.DeleteFunc(slices.Clone(table), func(check check) bool {
		return check.group == groupProxmox && !s.described.MakesMachines()
	})
}

// Refused says that a cluster cannot be created as things are.
type Refused struct{ Rows []Row }

func (r *Refused) Error() string {
	var text strings.Builder
	text.WriteString("nothing was changed, and create cannot begin:")
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "\n  %s %s: %s: %s", row.Group, row.Name, row.Seen, row.Fix)
	}
	return text.String()
}

// Blocking runs the checks that keep create from beginning, beside its reading of the secrets, and fails with a
// *Refused that has all that failed, or where none did the guards that could not be made. values waits for the
// secrets; they are nil where they could not be had, which create itself tells of. show takes each row that leaves
// something unknown.
func Blocking(ctx context.Context, cluster *run.Cluster, values func() *secrets.Values, show func(Row) error) error {
	s := newSight(ctx, cluster, createTime)
	defer s.close()
	s.values = values
	return s.blocking(ctx, show)
}

func (s *sight) blocking(ctx context.Context, show func(Row) error) error {
	var wanted []check
	guards := map[string]bool{}
	for _, check := range s.table() {
		if check.blocking {
			wanted = append(wanted, check)
			guards[check.name] = check.guard
		}
	}
	rows := s.run(ctx, wanted)
	refused := &Refused{Rows: with(rows, func(row Row) bool { return row.Verdict == Failed })}
	unmade := with(rows, func(row Row) bool {
		return row.Verdict == NotChecked || row.Verdict == Warning && row.Name == rowAddresses
	})
	for _, row := range unmade {
		if err := show(row); err != nil {
			return err
		}
	}
	if len(refused.Rows) == 0 && s.values() != nil {
		for _, row := range unmade {
			if row.Verdict == NotChecked && guards[row.Name] {
				row.Seen = "it could not be looked at: " + row.Seen
				row.Fix = fmt.Sprintf("create again; dagger call doctor --cluster %s shows whether it answers", s.described.Name)
				refused.Rows = append(refused.Rows, row)
			}
		}
	}
	locks := with(rows, func(row Row) bool { return row.Group == groupStates && row.Verdict == Warning })
	if len(refused.Rows) > 0 && len(locks) > 0 {
		// Another run may be at work: a clone that it makes has neither name nor tag yet, and is nobody else's.
		others := with(refused.Rows, func(row Row) bool { return row.Name != rowIDs })
		refused.Rows = append(locks, others...)
	}
	if len(refused.Rows) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	return refused
}

// with are the rows that are so.
func with(rows []Row, so func(Row) bool) (found []Row) {
	for _, row := range rows {
		if so(row) {
			found = append(found, row)
		}
	}
	return found
}

// run runs checks at the same time, and gives their rows in the checks' order.
func (s *sight) run(ctx context.Context, checks []check) []Row {
	found := make([][]finding, len(checks))
	var wait sync.WaitGroup
	for i, check := range checks {
		wait.Go(func() { found[i] = check.within(ctx, s) })
	}
	wait.Wait()
	var rows []Row
	for i, check := range checks {
		for _, f := range found[i] {
			rows = append(rows, Row{check.group, check.name, f.verdict, oneLine(f.seen), oneLine(f.fix)})
		}
	}
	return rows
}

// within runs a check until its deadline.
func (c check) within(ctx context.Context, s *sight) []finding {
	if c.late {
		s.values()
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	done := make(chan []finding, 1)
	go func() { done <- c.look(ctx, s) }()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
	}
	select {
	case found := <-done:
		return found
	case <-time.After(grace):
		return notChecked("it took longer than %s", s.limit)
	}
}

// oneLine is a text without secrets and line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(redact.Text(text)), " ") }
