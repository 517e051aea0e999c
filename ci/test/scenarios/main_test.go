//go:build linux

package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// repository is the project's folder, seen from this one.
const repository = "../../.."

// kit is what all scenarios run with: programs, charts and providers, put together once.
type kit struct {
	root     string // folder of it all, removed at the end
	path     string // folder with castle, castle-sandbox, terragrunt and tofu
	binaries string // folder with the programs that the proving ground runs for real
	charts   string
	plugins  string // filesystem mirror of the providers
}

var (
	once    sync.Once
	shared  kit
	missing error // why there is no kit
)

func TestMain(m *testing.M) {
	status := m.Run()
	if shared.root != "" {
		_ = os.RemoveAll(shared.root)
	}
	os.Exit(status)
}

// tools gives the kit, or ends a test that cannot run here.
func tools(t *testing.T) kit {
	t.Helper()
	needs.UnlessShort(t, "the proving ground")
	once.Do(func() { missing = assemble() })
	if missing == nil {
		return shared
	}
	needs.Missing(t, "the scenarios of create: %v", missing)
	return kit{}
}

func assemble() (err error) {
	if os.Getuid() != 0 {
		return errors.New("they need root, to make namespaces")
	}
	for _, name := range []string{"nsenter", "git", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("they need %s: %w", name, err)
		}
	}
	// Read by the library that looks up what must not leak; castle gets an environment of its own.
	key, err := os.ReadFile(filepath.Join(repository, "terragrunt", "live", "sandbox", "age.key"))
	if err == nil {
		err = os.Setenv("SOPS_AGE_KEY", string(key))
	}
	if err != nil {
		return err
	}
	if shared.root, err = os.MkdirTemp("", "scenarios-"); err != nil {
		return err
	}
	below := func(name string) string { return filepath.Join(shared.root, name) }
	shared.path, shared.binaries, shared.charts, shared.plugins = below("path"), below("binaries"), below("charts"), below("plugins")
	built, err := builtTools()
	if err != nil {
		return err
	}
	for name, file := range built.named {
		folder := shared.binaries
		if name == "tofu" || name == "terragrunt" {
			folder = shared.path
		}
		if err := place(file, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	if err := mirrorProviders(built); err != nil {
		return err
	}
	for _, program := range []string{"castle-cluster", "castle-sandbox"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(shared.path, program), "../../cmd/"+program).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, out)
		}
	}
	return composeCharts(built, below("tools"))
}

// built are the tools of the cache.
type built struct {
	named   map[string]string // programs by the name that castle or the proving ground knows them by
	folders map[string]string // everything that a tool's build kept, by the tool's name
}

// builtTools looks all tools up, and names all that are missing at once.
func builtTools() (built, error) {
	tools, err := needs.Find("terragrunt", "tofu", "etcd", "kubernetes", "metallb", "external-secrets", "source-controller",
		"kustomize-controller", "helm-controller", "notification-controller", "provider-proxmox", "provider-helm", "provider-kubernetes", "provider-kubectl")
	if err != nil {
		return built{}, err
	}
	found := built{named: map[string]string{}, folders: map[string]string{}}
	renamed := map[string]string{"controller": "metallb-controller"}
	for tool, made := range tools {
		found.folders[tool] = made.Folder
		for name, file := range made.Programs {
			found.named[cmp.Or(renamed[name], name)] = file
		}
	}
	return found, nil
}

// pinned finds a provider in root.hcl: its source and its version.
var pinned = regexp.MustCompile(`source = "([^"]+)"\n(?:\s*#.*\n)*\s*version = "([^"]+)"`)

// mirrorProviders lays the providers out as OpenTofu looks for them in a folder.
func mirrorProviders(tools built) error {
	text, err := os.ReadFile(filepath.Join(repository, "terragrunt", "root.hcl"))
	if err != nil {
		return err
	}
	all := pinned.FindAllStringSubmatch(string(text), -1)
	if len(all) != 4 {
		return fmt.Errorf("root.hcl pins %d providers, 4 are known here", len(all))
	}
	for _, match := range all {
		source, version := match[1], match[2]
		program := "terraform-provider-" + filepath.Base(source)
		file := filepath.Join(shared.plugins, "registry.opentofu.org", source, version, "linux_"+runtime.GOARCH, program+"_v"+version)
		if err := place(tools.named[program], file); err != nil {
			return err
		}
	}
	return nil
}

func composeCharts(tools built, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for tool, kept := range tools.folders {
		if err := os.Symlink(kept, filepath.Join(folder, tool)); err != nil {
			return err
		}
	}
	command := exec.Command(filepath.Join(shared.path, "castle-cluster"), "charts", "--layers="+filepath.Join(repository, "terragrunt"),
		"--tools="+folder, "--out="+shared.charts)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("put the charts together: %w\n%s", err, out)
	}
	return nil
}

// place puts a file somewhere else, as a link where that can be.
func place(source, dest string) error {
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return err
	}
	err := os.Link(source, dest)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(dest, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
