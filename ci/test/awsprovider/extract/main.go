// Command extract makes ../schema.json anew: what HashiCorp's provider for AWS says that its resources take. The provider is not to be had as
// a Go module, but bindings that are generated from its schema are an npm package:
//
//	npm pack @cdktn/provider-aws@25.7.0 && tar xzf cdktn-provider-aws-25.7.0.tgz
//	go run ./ci/test/awsprovider/extract package/lib > ci/test/awsprovider/schema.json
//
// Of the provider's own schema the bindings keep names, types, which of them have to be there and which the provider computes, and how blocks
// are nested. They keep no values that a text may have, and no defaults.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// resources are those of terragrunt/modules/platform-aws, and data sources begin with data_.
var resources = []string{
	"vpc", "internet_gateway", "subnet", "route_table", "route", "route_table_association", "default_security_group", "security_group",
	"vpc_security_group_ingress_rule", "vpc_security_group_egress_rule", "instance", "ebs_volume", "volume_attachment", "key_pair",
	"iam_role", "iam_role_policy", "iam_instance_profile", "lb", "lb_target_group", "lb_target_group_attachment", "lb_listener",
	"data_aws_ami", "data_aws_partition",
}

// block is what OpenTofu calls a block, in the form of `tofu providers schema -json`.
type block struct {
	Attributes map[string]attribute `json:"attributes,omitempty"`
	Blocks     map[string]nested    `json:"block_types,omitempty"`
}

type attribute struct {
	Type     any  `json:"type"`
	Required bool `json:"required,omitempty"`
	Optional bool `json:"optional,omitempty"`
	Computed bool `json:"computed,omitempty"`
}

type nested struct {
	Mode  string `json:"nesting_mode"`
	Block block  `json:"block"`
	Min   int    `json:"min_items,omitempty"`
	Max   int    `json:"max_items,omitempty"`
}

type schema struct {
	Version int   `json:"version"`
	Block   block `json:"block"`
}

var (
	classLine    = regexp.MustCompile(`(?m)^class (\w+) extends cdktn\.(\w+) \{$`)
	fieldLine    = regexp.MustCompile(`(?m)^ +// (\w+) - computed: (true|false), optional: (true|false), required: (true|false)$`)
	getter       = regexp.MustCompile(`this\.get(String|Number|Boolean|List|NumberList|StringMap|NumberMap|BooleanMap|AnyMap)Attribute\(`)
	inHcl        = regexp.MustCompile(`(?m)^ +(\w+): \{\n +value: (.*)\n +isBlock: (true|false),\n +type: "(\w+)",\n +storageClassType: "(\w+)",`)
	resourceType = regexp.MustCompile(`static tfResourceType = "(\w+)"`)
	version      = regexp.MustCompile(`providerVersion: '([^']+)'`)
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the folder package/lib of the unpacked npm package")
	}
	kinds := map[string]map[string]schema{"resource_schemas": {}, "data_source_schemas": {}}
	of := ""
	for _, name := range resources {
		file := filepath.Join(args[0], strings.ReplaceAll(name, "_", "-"), "index.js")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		kind, typ := "resource_schemas", "aws_"+name
		if rest, is := strings.CutPrefix(name, "data_"); is {
			kind, typ = "data_source_schemas", rest
		}
		whole, err := read(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if match := resourceType.FindStringSubmatch(string(text)); match == nil || match[1] != typ {
			return fmt.Errorf("%s is of %v, not of %s", file, match, typ)
		}
		of = version.FindStringSubmatch(string(text))[1]
		kinds[kind][typ] = schema{Block: whole}
	}
	text, err := os.ReadFile(filepath.Join(args[0], "provider", "index.js"))
	if err != nil {
		return err
	}
	own, err := read(string(text))
	if err != nil {
		return fmt.Errorf("the provider's own settings: %w", err)
	}
	// A resource is a line, for those who compare two versions.
	fmt.Printf("{\"format_version\":\"1.0\",\"of\":\"hashicorp/aws %s\",\"provider_schemas\":{\"registry.opentofu.org/hashicorp/aws\":{\n", of)
	line, err := json.Marshal(schema{Block: own})
	if err != nil {
		return err
	}
	fmt.Printf("\"provider\":%s", line)
	for _, kind := range []string{"resource_schemas", "data_source_schemas"} {
		fmt.Printf(",\n%q:{", kind)
		separator := "\n"
		for _, name := range resources {
			typ := strings.TrimPrefix("aws_"+name, "aws_data_")
			whole, is := kinds[kind][typ]
			if !is || kind == "resource_schemas" && strings.HasPrefix(name, "data_") {
				continue
			}
			if line, err = json.Marshal(whole); err != nil {
				return err
			}
			fmt.Printf("%s%q:%s", separator, typ, line)
			separator = ",\n"
		}
		fmt.Print("}")
	}
	fmt.Println("\n}}}")
	return nil
}

// read gives the block that a file of the bindings stands for.
func read(text string) (block, error) {
	classes, root := map[string]string{}, ""
	found := classLine.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, kind := text[at[2]:at[3]], text[at[4]:at[5]]
		// What a nested block looks like in HCL stands in a function before its class.
		begin := 0
		if i > 0 {
			begin = found[i-1][1]
		}
		classes[name] = text[at[0]:end]
		if strings.HasSuffix(name, "OutputReference") {
			function := text[begin:at[0]]
			if hcl := strings.LastIndex(function, "ToHclTerraform(struct) {"); hcl >= 0 {
				classes[name] = function[hcl:] + text[at[0]:end]
			}
		}
		if kind == "TerraformResource" || kind == "TerraformDataSource" || kind == "TerraformProvider" {
			root = name
		}
	}
	if root == "" {
		return block{}, fmt.Errorf("there is no resource in it")
	}
	return blockOf(classes, root)
}

// blockOf is that of one class.
func blockOf(classes map[string]string, class string) (block, error) {
	text := classes[class]
	type form struct {
		block         bool
		objects       bool // written as the value of an attribute, though it looks like a block
		kind, storage string
	}
	forms := map[string]form{}
	for _, match := range inHcl.FindAllStringSubmatch(text, -1) {
		forms[match[1]] = form{match[3] == "true", strings.Contains(match[2], ", false)("), match[4], match[5]}
	}
	made := block{Attributes: map[string]attribute{}, Blocks: map[string]nested{}}
	fields := fieldLine.FindAllStringSubmatchIndex(text, -1)
	for i, at := range fields {
		end := len(text)
		if i+1 < len(fields) {
			end = fields[i+1][0]
		}
		name := text[at[2]:at[3]]
		is := attribute{Computed: text[at[4]:at[5]] == "true", Optional: text[at[6]:at[7]] == "true", Required: text[at[8]:at[9]] == "true"}
		how := forms[name]
		if how.block {
			inner := strings.TrimSuffix(how.storage, "List")
			_, list := classes[inner+"List"]
			reference := inner + "OutputReference"
			if _, known := classes[reference]; !known {
				reference, list = how.storage+"OutputReference", false
			}
			if _, known := classes[reference]; !known {
				continue // of the provider's own settings, which have no such class: not for us
			}
			inside, err := blockOf(classes, reference)
			if err != nil {
				return block{}, err
			}
			if how.objects {
				object := map[string]any{}
				for name, one := range inside.Attributes {
					object[name] = one.Type
				}
				is.Type = []any{how.kind, []any{"object", object}}
				made.Attributes[name] = is
				continue
			}
			one := nested{Mode: how.kind, Block: inside}
			if how.kind == "struct" {
				one.Mode = "single"
			} else if !list {
				one.Max = 1
			}
			if is.Required {
				one.Min = 1
			}
			made.Blocks[name] = one
			continue
		}
		typ, known := typeOf(how.kind, how.storage, getter.FindStringSubmatch(text[at[0]:end]))
		if !known {
			if !is.Computed || is.Optional || is.Required {
				return block{}, fmt.Errorf("%s of %s has a type that is not known", name, class)
			}
			continue // a list of objects that the provider computes; no module of ours reads one
		}
		is.Type = typ
		made.Attributes[name] = is
	}
	return made, nil
}

// typeOf is a type as OpenTofu's JSON has it, of what the bindings write, or of how they read what is computed.
func typeOf(kind, storage string, get []string) (any, bool) {
	simple := map[string]string{"string": "string", "number": "number", "boolean": "bool"}
	switch {
	case kind == "simple":
		typ, known := simple[storage]
		return typ, known
	case kind == "list" || kind == "set" || kind == "map":
		for name, typ := range simple {
			if storage == name+"List" || storage == name+"Map" {
				return []string{kind, typ}, true
			}
		}
		return nil, false
	case get == nil:
		return nil, false
	}
	switch get[1] {
	case "String":
		return "string", true
	case "Number":
		return "number", true
	case "Boolean":
		return "bool", true
	case "List":
		return []string{"list", "string"}, true
	case "NumberList":
		return []string{"list", "number"}, true
	case "StringMap":
		return []string{"map", "string"}, true
	}
	return nil, false
}
