package proxmox

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// acl are the privileges that every token has, by path: a path without an entry has those of the nearest one above it, and all entries
// propagate. Source: pve-access-control 9.1, src/PVE/RPCEnvironment.pm, and PVE::AccessControl::roles. Pools, groups and the separation of
// a token's privileges from its user's are left out.
type acl map[string][]string

// everything is what a token has whose privileges nobody has limited: those of VMs, storages, bridges and hosts in Proxmox VE 8.4.
var everything = acl{"/": {
	"Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit", "SDN.Allocate", "SDN.Audit", "SDN.Use",
	"Sys.Audit", "Sys.Console", "Sys.Modify", "Sys.PowerMgmt", "Sys.Syslog", "VM.Allocate", "VM.Audit", "VM.Backup", "VM.Clone",
	"VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network",
	"VM.Config.Options", "VM.Console", "VM.Migrate", "VM.Monitor", "VM.PowerMgmt", "VM.Snapshot", "VM.Snapshot.Rollback",
}}

// known fails where an entry names no privilege of Proxmox's.
func (a acl) known() error {
	for at, privileges := range a {
		for _, privilege := range privileges {
			if !slices.Contains(everything["/"], privilege) {
				return fmt.Errorf("the Proxmox simulator knows no privilege %q on %s", privilege, at)
			}
		}
	}
	return nil
}

// without is the same with some privileges taken away everywhere.
func (a acl) without(privileges []string) acl {
	less := acl{}
	for at, held := range a {
		less[at] = slices.DeleteFunc(slices.Clone(held), func(privilege string) bool { return slices.Contains(privileges, privilege) })
	}
	return less
}

// at are the privileges on a path.
func (a acl) at(on string) []string {
	for ; on != "/"; on = path.Dir(on) {
		if held, listed := a[on]; listed {
			return held
		}
	}
	return a["/"]
}

func (a acl) has(on, privilege string) bool { return slices.Contains(a.at(on), privilege) }

// hasAny is check_any without its error.
func (a acl) hasAny(on string, privileges ...string) bool {
	return slices.ContainsFunc(privileges, func(privilege string) bool { return a.has(on, privilege) })
}

// check is PVE::RPCEnvironment::check, with its error.
func (a acl) check(on string, privileges ...string) error {
	for _, privilege := range privileges {
		if !a.has(on, privilege) {
			return forbidden(on, privilege)
		}
	}
	return nil
}

// checkAny is check_any.
func (a acl) checkAny(on string, privileges ...string) error {
	if a.hasAny(on, privileges...) {
		return nil
	}
	return forbidden(on, strings.Join(privileges, "|"))
}

// forbidden is raise_perm_exc (pve-common, PVE/Exception.pm).
func forbidden(on, privileges string) error {
	return &failure{code: http.StatusForbidden, message: fmt.Sprintf("Permission check failed (%s, %s)", on, privileges)}
}

// requirement is what a call asks of the caller before anything else.
type requirement func(a acl, r *request) error

// allOf asks for every privilege on a path, in which {name} stands for a parameter of the call.
func allOf(on string, privileges ...string) requirement {
	return func(a acl, r *request) error { return a.check(r.fill(on), privileges...) }
}

// oneOf asks for one of the privileges.
func oneOf(on string, privileges ...string) requirement {
	return func(a acl, r *request) error { return a.checkAny(r.fill(on), privileges...) }
}

// fill puts the call's parameters into a path.
func (r *request) fill(on string) string {
	parts := strings.Split(on, "/")
	for i, part := range parts {
		name, is := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if !is {
			continue
		}
		if parts[i] = r.http.PathValue(name); parts[i] == "" {
			parts[i] = r.params.Get(name)
		}
	}
	return strings.Join(parts, "/")
}

// topPaths are those that permissions tells of when it is asked for no path, beside the ACL's: get_effective_permissions.
var topPaths = []string{"/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"}

// permissions are the caller's own: all, or at a path those that it inherits there included. Source: pve-access-control 9.1,
// src/PVE/API2/AccessControl.pm. The value says whether the privilege propagates.
func (s *Server) permissions(r *request) (any, error) {
	shown := func(on string) map[string]int {
		held := map[string]int{}
		for _, privilege := range s.acl.at(on) {
			held[privilege] = 1
		}
		return held
	}
	if on := r.params.Get("path"); on != "" {
		return map[string]any{on: shown(on)}, nil
	}
	paths := map[string]any{}
	for _, on := range slices.AppendSeq(slices.Clone(topPaths), maps.Keys(s.acl)) {
		if held := shown(on); len(held) > 0 {
			paths[on] = held
		}
	}
	return paths, nil
}
