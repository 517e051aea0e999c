//go:build linux

package talosnodes

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/miekg/dns"
)

func TestTheDrillStartsNodesInTheNamespacesThatTheyNeed(t *testing.T) {
	script, err := os.ReadFile("../../../scripts/drill-talos.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "\nexec "+Unshare+" ") {
		t.Errorf("the script has no %q", Unshare)
	}
}

func TestNodesOutsideTheirNamespacesAreToldWhatToPutBefore(t *testing.T) {
	if others, err := interfaces(); err != nil || len(others) == 0 {
		t.Skipf("NOT RUN: this network namespace has nothing but its loopback: %v", err)
	}
	if err := (Options{}).Missing(); err == nil || !strings.Contains(err.Error(), Unshare) {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{Dir: t.TempDir()}); err == nil {
		t.Error("a bridge was made in the machine's own network")
	}
}

// told is what a name server answers.
type told struct {
	dns.ResponseWriter
	answer *dns.Msg
}

func (t *told) WriteMsg(answer *dns.Msg) error {
	t.answer = answer
	return nil
}

func TestOnlyTheHostsThatTheWorldPlaysAreThere(t *testing.T) {
	server := names{hosts: []string{"registry.k8s.io"}, address: netip.MustParseAddr("10.5.0.1")}
	for _, c := range []struct {
		name    string
		kind    uint16
		code    int
		answers int
	}{
		{"registry.k8s.io.", dns.TypeA, dns.RcodeSuccess, 1},
		{"Registry.K8s.IO.", dns.TypeA, dns.RcodeSuccess, 1},
		{"registry.k8s.io.", dns.TypeAAAA, dns.RcodeSuccess, 0}, // it is there, and has no such address
		{"example.org.", dns.TypeA, dns.RcodeNameError, 0},
	} {
		var said told
		server.ServeDNS(&said, new(dns.Msg).SetQuestion(c.name, c.kind))
		if said.answer.Rcode != c.code || len(said.answer.Answer) != c.answers {
			t.Errorf("%s: %v", c.name, said.answer)
		}
	}
}

func TestAnImageHasItsProgramAndWhatAContainerNeeds(t *testing.T) {
	program := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(program, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := image("registry.k8s.io/etcd:v3", "usr/local/bin/etcd", program).Build()
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(image)
	defer content.Close()
	found := map[string]string{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.Linkname + string(text)
	}
	if found["usr/local/bin/etcd"] != "a program" || found["var/run"] != "../run" || !strings.HasPrefix(found["etc/passwd"], "root:x:0:0:") {
		t.Errorf("it holds %q", found)
	}
}

func TestAMachineKeepsItsHardwareAddress(t *testing.T) {
	one, two := netip.MustParseAddr("10.5.0.211"), netip.MustParseAddr("10.5.0.212")
	if got := hardwareAddress(one).String(); got != "02:ca:0a:05:00:d3" {
		t.Errorf("it is %s", got)
	}
	if hardwareAddress(one).String() == hardwareAddress(two).String() {
		t.Error("two have the same")
	}
}

func TestTheGroupsOfAKilledWorldAreRemovedLater(t *testing.T) {
	mounted, err := cgroups()
	if err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	group, err := os.MkdirTemp(mounted, "castle-test-*")
	if err != nil {
		t.Skipf("NOT RUN: no control group can be made: %v", err)
	}
	t.Cleanup(func() { _ = removeGroup(group) })
	if err := os.MkdirAll(filepath.Join(group, "yard-cp-1", "init"), 0o755); err != nil {
		t.Fatal(err)
	}
	both := []string{group}
	if older, err := hierarchies(); err == nil && len(older) > 0 {
		both = append(both, filepath.Join(hierarchiesFolder, older[0], filepath.Base(group)))
		if err := os.Mkdir(both[1], 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = removeGroup(both[1]) })
	}
	sweep(group, time.Now())
	if _, err := os.Stat(group); err != nil {
		t.Errorf("a world that may start its first node yet lost its group: %v", err)
	}
	sweep(group, time.Now().Add(2*abandoned))
	for _, one := range both {
		if _, err := os.Stat(one); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there still: %v", one, err)
		}
	}
}
