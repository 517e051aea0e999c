package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func closed(all resources) []finding {
	found := all.each("aws_vpc_security_group_ingress_rule", func(rule resource) []finding {
		at := number(rule.AttributeValues["from_port"])
		ports := at == number(rule.AttributeValues["to_port"]) && rule.AttributeValues["ip_protocol"] == "tcp" && (at == 6443 || at == 50000)
		cidr := rule.AttributeValues["cidr_ipv4"]
		switch {
		case rule.AttributeValues["cidr_ipv6"] != nil || rule.AttributeValues["prefix_list_id"] != nil:
			return []finding{"lets in by something else than a group or an address"}
		case rule.unknown["referenced_security_group_id"] == true:
			return when(cidr != nil || rule.unknown["cidr_ipv4"] == true, "lets in by address, too")
		case rule.unknown["cidr_ipv4"] == true: // a node's own address, known when it is there
			return when(rule.Name != "node" || at != 6443 || !ports, "lets in an address that nobody knows")
		}
		return when(!slices.Contains(admins, cidr) || !ports, "lets in %v at %v to %v", cidr, at, rule.AttributeValues["to_port"])
	})
	inline := func(group resource) []finding {
		return when(len(list(group.AttributeValues["ingress"])) > 0, "has rules of its own")
	}
	return slices.Concat(found, all.each("aws_security_group", inline), all.each("aws_default_security_group", inline))
}

func noLogin(all resources) []finding {
	found := all.each("aws_instance", func(instance resource) []finding {
		var found []finding
		for _, name := range []string{"key_name", "user_data", "user_data_base64", "get_password_data"} {
			found = append(found, when(instance.AttributeValues[name] != nil, "has %s", name)...)
		}
		return found
	})
	for _, one := range all {
		found = append(found, when(one.Type == "aws_key_pair", "%s is a key for SSH", one.Address)...)
	}
	return append(found, all.each("aws_vpc_security_group_ingress_rule", func(rule resource) []finding {
		from, to := number(rule.AttributeValues["from_port"]), number(rule.AttributeValues["to_port"])
		return when(rule.AttributeValues["ip_protocol"] == "-1" || from <= 22 && 22 <= to, "lets SSH in")
	})...)
}

func metadata(all resources) []finding {
	return all.each("aws_instance", func(instance resource) []finding {
		options := first(instance.AttributeValues["metadata_options"])
		return when(options["http_tokens"] != "required" || number(options["http_put_response_hop_limit"]) != 1, "has the metadata options %v", options)
	})
}

func encrypted(all resources) []finding {
	of := func(volume map[string]any, kind string) bool {
		return volume["encrypted"] == true && volume[kind] == "gp3"
	}
	found := all.each("aws_instance", func(instance resource) []finding {
		found := when(!of(first(instance.AttributeValues["root_block_device"]), "volume_type"), "has a root volume in clear, or of another kind")
		return append(found, when(len(list(instance.AttributeValues["ebs_block_device"])) > 0, "has volumes that no rule looks at")...)
	})
	return append(found, all.each("aws_ebs_volume", func(volume resource) []finding {
		return when(!of(volume.AttributeValues, "type"), "is in clear, or of another kind")
	})...)
}

func tagged(all resources) []finding {
	known, err := schemas()
	if err != nil {
		return []finding{err.Error()}
	}
	var found []finding
	groups := 0
	for _, one := range all {
		takes := false
		for _, attribute := range known.ResourceSchemas[one.Type].Block.Attributes {
			takes = takes || attribute.Name == "tags"
		}
		tags, _ := one.AttributeValues["tags"].(map[string]any)
		found = append(found, when(takes && tags["castle"] != "cloud", "%s has the tags %v", one.Address, tags)...)
		if one.Type == "aws_security_group" && tags[owner] != nil {
			groups++
		}
		if one.Type == "aws_instance" || one.Type == "aws_subnet" || one.Type == "aws_vpc" {
			found = append(found, when(tags[owner] != "owned", "%s is not found by the cloud controller manager: %v", one.Address, tags)...)
		}
	}
	return append(found, when(groups != 1, "%d groups have the tag %s; the cloud controller manager wants one", groups, owner)...)
}

func least(all resources) []finding {
	found := all.each("aws_instance", func(instance resource) []finding {
		// Where the configuration has none, the plan says that it is not known, and never a name.
		profile := instance.AttributeValues["iam_instance_profile"] != nil
		role := instance.AttributeValues["tags"].(map[string]any)["role"]
		return when(profile != (role == "controlplane"), "is a %v, has a profile: %t", role, profile)
	})
	found = append(found, all.each("aws_iam_role", func(role resource) []finding {
		trust, _ := role.AttributeValues["assume_role_policy"].(string)
		return when(!strings.Contains(trust, `"Principal":{"Service":"ec2.amazonaws.com"}`), "is taken by %s", trust)
	})...)
	return append(found, all.each("aws_iam_role_policy", func(policy resource) []finding {
		var document struct {
			Statement []struct {
				Sid              string
				Action, Resource any
				Condition        map[string]map[string]string
			}
		}
		text, _ := policy.AttributeValues["policy"].(string)
		if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Statement) == 0 {
			return []finding{fmt.Sprintf("cannot be read: %v: %s", err, text)}
		}
		var found []finding
		for _, statement := range document.Statement {
			actions := list(statement.Action)
			if one, is := statement.Action.(string); is {
				actions = []any{one}
			}
			looks := true
			for _, action := range actions {
				name := fmt.Sprint(action)
				found = append(found, when(strings.Contains(name, "*"), "%s allows %s", statement.Sid, name)...)
				_, verb, _ := strings.Cut(name, ":")
				looks = looks && strings.HasPrefix(verb, "Describe")
			}
			found = append(found, when(!looks && (statement.Resource == "*" || len(statement.Condition) == 0),
				"%s allows %v on %v, whosever it is", statement.Sid, actions, statement.Resource)...)
		}
		return found
	})...)
}

func balanced(all resources) []finding {
	found := all.each("aws_lb", func(lb resource) []finding {
		zones, groups := len(list(lb.AttributeValues["subnets"])), len(list(lb.AttributeValues["security_groups"]))
		return when(lb.AttributeValues["load_balancer_type"] != "network" || zones != 3 || groups != 1, "stands in %d zones, behind %d groups", zones, groups)
	})
	return append(found, all.each("aws_lb_target_group", func(target resource) []finding {
		check := first(target.AttributeValues["health_check"])
		return when(check["protocol"] != "TCP" || check["port"] != "traffic-port" || target.AttributeValues["preserve_client_ip"] != "false",
			"is asked by %v at %v, and sees clients' addresses: %v", check["protocol"], check["port"], target.AttributeValues["preserve_client_ip"])
	})...)
}
