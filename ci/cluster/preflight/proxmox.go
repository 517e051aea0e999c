package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/secrets"
)

// certificate shakes hands with Proxmox, without the token.
func certificate(_ context.Context, s *inspection) []finding {
	proxmox := s.described.Proxmox
	err := s.certificate()
	if refused, is := errors.AsType[*hypervisor.Refusal](err); is {
		return []finding{{Failed, refused.Seen, refused.Fix}}
	}
	switch {
	case err != nil:
		return []finding{{Failed, err.Error(), "check proxmox.url in cluster.yaml, and that Proxmox is on and can be reached from here"}}
	case proxmox.Insecure:
		return []finding{{Warning, "not looked at: proxmox.insecure takes anybody who answers for Proxmox, and gives them the token", "write ca or fingerprint instead (docs/create.md, Proxmox's certificate)"}}
	case proxmox.Fingerprint != "":
		return ok("the one that proxmox.fingerprint names")
	case proxmox.CA != "":
		return ok("signed by the authority in %s", proxmox.CA)
	}
	return ok("signed by an authority that this machine knows")
}

// tokenName is what of a token may be shown.
func tokenName(text string) string {
	name, _, _ := strings.Cut(text, "=")
	return name
}

// token has Proxmox take it.
func token(_ context.Context, s *inspection) []finding {
	api := s.api()
	switch {
	case api.Hypervisor == nil:
		return notChecked("%s", api.why)
	case hypervisor.Refused(api.err):
		user, name, _ := strings.Cut(api.token, "!")
		return []finding{{Failed, fmt.Sprintf("Proxmox does not know the token %s, or not with this value", api.token),
			fmt.Sprintf("make it on a Proxmox node with pveum user token add %s %s --privsep 0, and write %s=VALUE as %s: sops edit %s", user, name, api.token, secrets.ProxmoxAPIToken,
				strings.Join(s.described.Secrets.SOPS, " or "))}}
	case api.err != nil:
		return []finding{{Failed, api.err.Error(), "look at pveproxy and pvedaemon on the Proxmox node: journalctl -u pveproxy -u pvedaemon"}}
	}
	// The end of a text is no place for the beginning of a secret: it would be taken for one that was cut off.
	return ok("%s is known to Proxmox VE %s", api.token, api.version)
}

// role is the one that docs/create-a-cluster.md has people make.
const role = "Castle"

// privileges names each that is missing.
func privileges(_ context.Context, s *inspection) []finding {
	api := s.api()
	if api.why != "" {
		return notChecked("%s", api.why)
	}
	lacks, err := s.lacks()
	switch {
	case err != nil:
		return notChecked("%v", err)
	case lacks.all:
		user, _, _ := strings.Cut(api.token, "!")
		return []finding{{Failed, fmt.Sprintf("the token %s has none of the privileges that it needs", api.token),
			fmt.Sprintf("on a Proxmox node: pveum acl modify / --users %s --roles %s, and for a token with privileges of its own (privsep) pveum acl modify / --tokens '%s' --roles %[2]s",
				user, role, api.token)}}
	case len(lacks.list) == 0:
		return ok("all %d on VMs, template, storage, bridge and hosts", len(hypervisor.Privileges()))
	}
	var found []finding
	for _, lack := range lacks.list {
		verdict, seen := Failed, "the token lacks "+lack.String()
		if lack.Spare {
			verdict, seen = Warning, seen+", which create does without"
		}
		found = append(found, finding{verdict, seen,
			fmt.Sprintf("on a Proxmox node: pveum role modify %s --privs %s --append 1 (%[1]s is the role of docs/create-a-cluster.md)", role, lack.Privilege)})
	}
	return found
}

// hosts looks for the Proxmox nodes that the cluster's nodes stand on.
func hosts(ctx context.Context, s *inspection) []finding {
	api := s.api()
	if api.why != "" {
		return notChecked("%s", api.why)
	}
	there, known, err := api.Hosts(ctx)
	if err != nil {
		return notChecked("%v", err)
	}
	var found []finding
	var names []string
	for _, host := range there {
		names = append(names, host.Name)
		switch {
		case !host.Exists:
			found = append(found, finding{Failed, fmt.Sprintf("there is no Proxmox node %s, but %s", host.Name, strings.Join(known, ", ")),
				fmt.Sprintf("write one of these as host of %s in cluster.yaml", strings.Join(s.nodesOn(host.Name), ", "))})
		case !host.Online:
			found = append(found, finding{Failed, fmt.Sprintf("the Proxmox node %s is offline", host.Name), "switch it on, or look at pvecm status on another one"})
		}
	}
	if found == nil {
		return ok("online: %s", strings.Join(names, ", "))
	}
	return found
}

// nodesOn are the cluster's nodes on a host, by name.
func (s *inspection) nodesOn(host string) []string {
	var names []string
	for _, node := range s.described.Nodes {
		if node.Host == host {
			names = append(names, node.Name)
		}
	}
	return names
}

// bridge looks for it on each host. Proxmox lists only those that the token may use.
func bridge(ctx context.Context, s *inspection) []finding {
	api := s.api()
	if api.why != "" {
		return notChecked("%s", api.why)
	}
	if lacks, err := s.lacks(); err != nil || lacks.has("SDN.Use") {
		return notChecked("%s", seeRow("the token does not see it", groupProxmox, "privileges"))
	}
	on, err := api.Bridges(ctx)
	if err != nil {
		return notChecked("%v", err)
	}
	var without []string
	for host, has := range on {
		if !has {
			without = append(without, host)
		}
	}
	name := s.described.Proxmox.Bridge
	if len(without) > 0 {
		slices.Sort(without)
		return []finding{{Failed, fmt.Sprintf("there is no bridge %s on %s", name, strings.Join(without, ", ")),
			"write a bridge that is there as proxmox.bridge in cluster.yaml; ip -br link show type bridge lists them on a Proxmox node"}}
	}
	return ok("%s is there", name)
}
