// Package preflight looks at everything that a cluster is made with and on, before anything is changed: engine,
// tools, secrets, Proxmox, addresses, clocks, the GitOps repository, the images' registry, the store of the
// states. Nothing that it asks changes anything, but for an object that it writes into the store of the states and
// removes again.
//
// A check is a row of the table. All run at the same time and each has a deadline of its own. What one has to know that another one finds out
// is asked for once (inspection.go), and where it cannot be had the row says so instead of failing a second time.
package preflight

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
	look func(context.Context, *inspection) []finding
	// looksAt says in docs/create.md what is looked at, and what becomes of it.
	looksAt string
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
	{group: groupEngine, name: "version", look: version,
		looksAt: "the Dagger engine's, beside the one that castle was made for: another minor version is a warning"},
	{group: groupEngine, name: "disk", blocking: true, look: disk,
		looksAt: "room for states, records and temporary files: less than 1 GiB is a warning, less than 32 MiB fails"},
	{group: groupTools, name: "programs", blocking: true, look: programs,
		looksAt: "OpenTofu and Terragrunt run, and of which version they are"},
	{group: groupSecrets, name: "SOPS files", look: openFiles,
		looksAt: "the age key opens each of them"},
	{group: groupSecrets, name: "Infisical", look: readInfisical,
		looksAt: "the machine identity logs in and is given all that it needs in the cluster's path. Whether it may write is known only once something was written"},
	{group: groupSecrets, name: "complete", look: complete,
		looksAt: "every secret that is missing, unfit or hidden from the identity, by name"},
	{group: groupSecrets, name: "identities", late: true, look: identities,
		looksAt: "those that go into the cluster read their own folders in Infisical, and nothing of castle's"},
	{group: groupProxmox, name: "certificate", blocking: true, look: certificate,
		looksAt: "it is the one that `cluster.yaml` says"},
	{group: groupProxmox, name: "token", blocking: true, look: token,
		looksAt: "Proxmox knows it"},
	{group: groupProxmox, name: "privileges", blocking: true, look: privileges,
		looksAt: "each one that is missing, by name and path: Proxmox works out itself what the token has there. `Datastore.Audit`, `Sys.Audit` and `VM.Config.HWType` are warnings: create does without"},
	{group: groupProxmox, name: "hosts", blocking: true, look: hosts,
		looksAt: "the Proxmox nodes that `cluster.yaml` names are there and online"},
	{group: groupProxmox, name: "storage", blocking: true, look: storage,
		looksAt: "it takes disks. Less than 10 GiB free for each VM that is to be made fails, less than all their disks together is a warning, and fails on `lvm`, which gives nothing later"},
	{group: groupProxmox, name: "bridge", blocking: true, look: bridge,
		looksAt: "it is there on each host"},
	{group: groupProxmox, name: "template", blocking: true, look: template,
		looksAt: "each of them is there, a template, and on the host of the nodes that are to be made, or on shared storage"},
	{group: groupProxmox, name: rowIDs, blocking: true, guard: true, look: ids,
		looksAt: "at the nodes' ids stands nothing, or the cluster's own. A disk that a VM of such an id left behind is a warning, a cloud-init drive fails"},
	{group: groupNetwork, name: "names", look: names,
		looksAt: "those that stand in `cluster.yaml` in place of addresses can be resolved, unless a proxy does that"},
	{group: groupNetwork, name: rowAddresses, blocking: true, guard: true, look: addresses,
		looksAt: "nobody answers at those of nodes whose VM is not running, of the API before a control plane runs, and of the load balancer (the first 64) before any node does"},
	{group: groupNetwork, name: "machines", look: machinesAnswer,
		looksAt: "those that run answer at their declared addresses: another one, as of a DHCP server, is a warning. Where [castle makes none](machines.md), each has to answer, in maintenance mode or with the cluster's PKI"},
	{group: groupNetwork, name: "clocks", blocking: true, look: clocks,
		looksAt: "Proxmox's and Infisical's, as their answers are dated: 30 s off is a warning, 5 min fails, since certificates are then not yet good"},
	{group: groupGitOps, name: "readable", blocking: true, late: true, look: readable,
		looksAt: "`GITOPS_TOKEN` fetches the branch, and the cluster's folder is in it"},
	{group: groupGitOps, name: "writable", late: true, look: writable,
		looksAt: "a push that is tried and not made, with `--git-token`, else with `GITOPS_TOKEN`, which need not be able to"},
	{group: groupRegistry, name: "images", look: images,
		looksAt: "where castle.yaml of this repository publishes to: the registry answers, and with `--registry-password` an upload is begun there, and given up"},
	{group: groupStates, name: "store", blocking: true, look: store,
		looksAt: "the states are this cluster's; the bucket is there, can be listed and obeys conditions of writes, and nobody has the cluster locked; or the states may be local"},
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
	s := newInspection(ctx, cluster, lookTime)
	defer s.close()
	s.asked = asked
	s.openSources(ctx)
	return s.run(ctx, s.table())
}

// table are the rows of a cluster: there is no Proxmox to ask where castle makes no machines.
func (s *inspection) table() []check {
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
	s := newInspection(ctx, cluster, createTime)
	defer s.close()
	s.values = values
	return s.blocking(ctx, show)
}

func (s *inspection) blocking(ctx context.Context, show func(Row) error) error {
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
		refused.Rows = slices.Concat(locks, others)
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
func (s *inspection) run(ctx context.Context, checks []check) []Row {
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
func (c check) within(ctx context.Context, s *inspection) []finding {
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
