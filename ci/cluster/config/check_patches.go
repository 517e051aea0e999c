package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// said is what of a machine configuration is not to be patched: castle makes it of the description, or the cluster depends on it. Each path
// stands for all below it.
var said = []struct {
	kind, name string // of the document; v1alpha1 has no kind. An empty name stands for each
	path       string // "" for the document as a whole
	instead    string
}{
	{"", "", "machine.type", "nodes[].role says it"},
	{"", "", "machine.token", ofSecrets},
	{"", "", "machine.ca", ofSecrets},
	{"", "", "machine.install.disk", installDisk},
	{"", "", "machine.install.diskSelector", installDisk},
	{"", "", "machine.install.image", "talos.version and talos.schematic say it"},
	{"", "", "machine.kubelet.image", "kubernetes.version says it"},
	{"", "", "machine.kubelet.nodeIP", ofNetwork},
	{"", "", "machine.network.hostname", "nodes[].name says it"},
	{"", "", "machine.network.interfaces", ofNetwork},
	{"", "", "machine.network.nameservers", "network.dns says it"},
	{"", "", "machine.systemDiskEncryption", "talos.diskEncryption says it"},
	{"", "", "cluster.id", ofSecrets},
	{"", "", "cluster.secret", ofSecrets},
	{"", "", "cluster.token", ofSecrets},
	{"", "", "cluster.ca", ofSecrets},
	{"", "", "cluster.aggregatorCA", ofSecrets},
	{"", "", "cluster.serviceAccount", ofSecrets},
	{"", "", "cluster.aescbcEncryptionSecret", ofSecrets},
	{"", "", "cluster.secretboxEncryptionSecret", ofSecrets},
	{"", "", "cluster.clusterName", "name says it"},
	{"", "", "cluster.controlPlane.endpoint", "endpoint says it"},
	{"", "", "cluster.controlPlane.localAPIServerPort", "castle reaches the API at 6443"},
	{"", "", "cluster.etcd.ca", ofSecrets},
	{"", "", "cluster.etcd.advertisedSubnets", ofNetwork},
	{"", "", "cluster.etcd.listenSubnets", ofNetwork},
	{"", "", "cluster.network.cni", "kubernetes.cni says it"},
	{"", "", "cluster.network.podSubnets", "kubernetes.podSubnet says it"},
	{"", "", "cluster.network.serviceSubnets", "kubernetes.serviceSubnet says it"},
	{"", "", "cluster.apiServer.image", "kubernetes.version says it"},
	{"", "", "cluster.controllerManager.image", "kubernetes.version says it"},
	{"", "", "cluster.scheduler.image", "kubernetes.version says it"},
	{"", "", "cluster.proxy.image", "kubernetes.version says it"},
	{"HostnameConfig", "", "", "nodes[].name says it"},
	{"ResolverConfig", "", "", "network.dns says it"},
	{"Layer2VIPConfig", "", "", "endpoint says it"},
	{"LinkAliasConfig", nodeLink, "", ofNetwork},
	{"LinkConfig", nodeLink, "", ofNetwork},
	{"DHCPv4Config", nodeLink, "", ofNetwork},
	{"DHCPv6Config", nodeLink, "", ofNetwork},
	{"VolumeConfig", "EPHEMERAL", "encryption", "talos.diskEncryption says it"},
}

// nodeLink is what castle calls the nodes' network card, see ci/cluster/talos/machineconfig.
const nodeLink = "net0"

const (
	ofSecrets   = "it is of the cluster's PKI, TALOS_SECRETS"
	ofNetwork   = "network and nodes[].address say it"
	installDisk = "Talos is on the first of nodes[].disks, or where nodes[].installDisk says"
)

// patch checks that a patch is YAML of documents, and leaves alone what castle relies on. What Talos itself does not know is found by its
// own library, in ci/cluster/talos/machineconfig.
func (k *checker) patch(path string, p Patch) {
	documents, err := p.documents()
	switch {
	case err != nil:
		k.Mistake(path, "%s is not YAML: %s", p.what(), strings.TrimPrefix(err.Error(), "yaml: "))
	case len(documents) == 0:
		k.Mistake(path, "%s is empty; remove it", p.what())
	}
	for _, root := range documents {
		if root.Kind != yaml.MappingNode {
			k.wrong(path, p, root, "is not a strategic merge patch, which is a mapping such as {machine: {sysctls: {vm.max_map_count: \"262144\"}}}")
			continue
		}
		kind, name := scalar(root, "kind"), scalar(root, "name")
		for _, rule := range said {
			if rule.kind != kind || rule.name != "" && rule.name != name {
				continue
			}
			keys := strings.Split(rule.path, ".")
			if rule.path == "" {
				keys = nil
			}
			if found := touches(root, keys); found != nil {
				k.wrong(path, p, found, "changes %s, which castle relies on: %s", strings.TrimSpace(kind+" "+strings.Join(slices.DeleteFunc([]string{rule.name, rule.path}, empty), " ")), rule.instead)
			}
		}
	}
}

// documents are those of the patch's text, or the one that stands in the description.
func (p Patch) documents() (list []*yaml.Node, err error) {
	if p.node != nil {
		return []*yaml.Node{p.node}, nil
	}
	for decoder := yaml.NewDecoder(strings.NewReader(p.text)); ; {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, err
		}
		list = append(list, document.Content[0])
	}
}

func empty(text string) bool { return text == "" }

func (p Patch) what() string {
	if p.file != "" {
		return "the patch " + p.file
	}
	return "the patch"
}

// wrong records a mistake at a place in a patch, in the description by its line, in a file by name.
func (k *checker) wrong(path string, p Patch, at *yaml.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case p.file != "":
		k.Mistake(path, "%s %s", p.Place(at.Line), text)
	case p.node != nil:
		k.MistakeAt(at.Line, path, "%s", text)
	default:
		k.MistakeAt(p.line+at.Line-1, path, "%s", text)
	}
}

// touches finds what in a patch sets the value at a path of keys, or removes it; nil where nothing does.
func touches(mapping *yaml.Node, keys []string) *yaml.Node {
	if len(keys) == 0 {
		return mapping
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if key.Value == "$patch" { // "delete" removes all that is here
			return key
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if key.Value != keys[0] {
			continue
		}
		if len(keys) == 1 || value.Kind != yaml.MappingNode {
			return key
		}
		if found := touches(value, keys[1:]); found != nil {
			return found
		}
	}
	return nil
}

func scalar(mapping *yaml.Node, name string) string {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1].Value
		}
	}
	return ""
}
