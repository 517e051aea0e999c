package ci

import (
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/drill/stories"
)

// looked are the beginnings of a row of troubleshooting.md in which somebody finds what to type whom a story happens to. "–" is a story that
// asks nothing of anybody: castle settles it, and its report or nothing says so.
var looked = map[string]string{
	"static-tag": "`… exists with the digest …", "dirty-tree": "`the working tree cannot be published: …", "push-race": "`conflict: …",
	"yaml-sed": "`…: found … times`", "manifest-before-image": "`the manifest is untouched: …", "registry-moods": "`the registry … is not available: …",
	"ambiguous-terms": "–", "headers-break": "nothing, but fonts, pictures or comments are missing", "moved-base-image": "`… exists with the digest …",
	"pushed-first": "`… exists with the digest …, and this build is …: that image says", "poisoned-cache": "–",
	"image-swapped": "`… published …, and … is … now`", "republish": "–", "cold-runner": "–", "secrets-leak": "–",

	"refused-images": "`waiting for …`, and `cannot pull …`", "volumes-late": "`waiting for …`", "silent-address": "`an address for a LoadBalancer Service`, and `unproven`",
	"cert-late": "–", "crd-lying": "`waiting for …`",
	"webhook-late": "`waiting for …`", "webhook-lies": "`waiting for …`", "wait-on-nothing": "`waiting for …`", "bootstrap-noop": "`waiting for …`",
	"vip-flaps": "`waiting for …`", "slow-uplink": "`waiting for …`", "apiserver-restarts": "`waiting for …`", "kubelet-restarts": "`waiting for …`", "apiserver-ends": "–", "dns-late": "`waiting for …`", "extra-mounts": "`waiting for …`", "flux-needs-secret": "`waiting for …`: a GitRepository",
	"ghosts": "`… remembers another cluster: …`", "false-ghost": "`… was configured before", "etcd-alarm": "`etcd … raised the alarm …`",
	"time-late": "–", "bootstrap-slow": "–", "lost-learner": "–", "slow-learner": "–", "forgotten-bootstrap": "–", "slow-etcd": "`… is no healthy member of etcd and has not got further …`",
	"dhcp-drift": "`… does not answer at its declared address …", "wrong-template": "`… was cloned from a template",
	"cidr-nonsense": "lines as `cluster.yaml:20: …`", "patched": "lines as `cluster.yaml:20: …`", "own-network": "lines as `cluster.yaml:20: …`",
	"infisical-moods": "`layer … failed: …`", "proxmox-moods": "`layer … failed: …`", "storage-lock": "`layer … failed: …`",
	"namespace-editor": "`the machine identities that go into the cluster may read",
	"hidden-secrets":   "`… may be seen but not read by the identity …`", "approval-policy": "`… the change waits for an approval …`",
	"missing-secrets": "`cluster … lacks secrets: …`", "no-infisical": "`cluster … lacks secrets: …`", "wrong-age-key": "`wrong age key: …`",
	"secret-exists": "`the API of cluster … answers", "pki-race": "–", "proxmox-tls": "`the certificate is not the one", "changed-download": "`… has the digest …, and … pins …`",
	"two-at-once": "`cluster … is locked by …", "s3-lock": "`… locked by … of … since …", "same-name-twice": "`the states of … in … belong to another cluster", "half-way": "`to go on where it stopped: …`",
	"helm-lock": "`to go on where it stopped: …`", "all-at-once": "`to go on where it stopped: …`", "mixed-faults": "`to go on where it stopped: …`",
	"node-leaves": "`… still has pods after …", "renamed-node": "`create would remove the VM of …", "one-machine": "`the layer … is none in cluster.yaml",
	"two-hosts": "`create would take a disk of … away`", "two-clusters": "–", "empty-repository": "–",
	"vm-exists": "nothing, but the states are gone", "foreign-vm": "`VM … on … is … without the cluster's tag…`",
	"wipe-guards": "`destroy` fails, and again", "destroy-hangs": "`not removed by itself, but with the machines", "flux-fights-destroy": "`not removed by itself, but with the machines",
	"role-as-name": "lines as `cluster.yaml:20: …`", "old-note": "–",
	"disk-stays": "`VM … is gone, and its volume",
	"doctor":     "`nothing was changed, and create cannot begin:`", "proxmox-privileges": "`nothing was removed: the Proxmox token must not remove",
	"kept-machines": "`… was left as it is, with the cluster's keys",
	"tool-sees-all": "–",
	"crd-with-cr":   "errors of `check-gitops`", "heavy-gate": "errors of `check-gitops`", "wrong-port": "errors of `check-gitops`",
}

func TestTroubleshootingSaysWhatToTypeForEachStory(t *testing.T) {
	found := map[string]bool{}
	for row := range tableRows(t) {
		for story, begins := range looked {
			if strings.HasPrefix(row[0], begins) && strings.TrimSpace(row[len(row)-1]) != "" {
				found[story] = true
			}
		}
	}
	for _, story := range stories.All() {
		switch begins, known := looked[story.Name]; {
		case !known:
			t.Errorf("whom the story %s happens to: in which row of %s does it stand what to type?", story.Name, wrong)
		case begins != "–" && !found[story.Name]:
			t.Errorf("%s has no row that begins with %q, for the story %s", wrong, begins, story.Name)
		}
		delete(looked, story.Name)
	}
	for name := range looked {
		t.Errorf("there is no story %s", name)
	}
}
