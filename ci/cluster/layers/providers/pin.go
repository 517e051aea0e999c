package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// rootFile pins the providers of all layers.
const rootFile = "root.hcl"

// pinForm finds a provider there: its source and its version.
var pinForm = regexp.MustCompile(`source = "([^"]+)"\n(?:\s*#.*\n)*\s*version = "([^"]+)"`)

// Pin asks the registry for the hashes of all providers that the folder terragrunt pins, for some platforms ("linux_amd64"), and gives
// them as a lock file. OpenTofu downloads each of them once, and checks who signed it where its registry says who may.
func Pin(ctx context.Context, tofu, terragrunt string, platforms []string) ([]byte, error) {
	root, err := os.ReadFile(filepath.Join(terragrunt, rootFile))
	if err != nil {
		return nil, err
	}
	pins := pinForm.FindAllStringSubmatch(string(root), -1)
	if len(pins) == 0 || len(pins) != strings.Count(string(root), `source = "`) {
		return nil, fmt.Errorf("%s: %d providers were found with a version behind their source; give each of them one", rootFile, len(pins))
	}
	folder, err := os.MkdirTemp("", "castle-providers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	var configuration strings.Builder
	configuration.WriteString("terraform {\n  required_providers {\n")
	for _, pin := range pins {
		fmt.Fprintf(&configuration, "    %s = {\n      source  = %q\n      version = %q\n    }\n", filepath.Base(pin[1]), pin[1], pin[2])
	}
	configuration.WriteString("  }\n}\n")
	if err := os.WriteFile(filepath.Join(folder, "providers.tf"), []byte(configuration.String()), 0o600); err != nil {
		return nil, err
	}
	args := []string{"providers", "lock", "-no-color"}
	for _, platform := range platforms {
		args = append(args, "-platform="+platform)
	}
	command := exec.CommandContext(ctx, tofu, args...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("tofu providers lock: %w\n%s", err, out))
	}
	locks, err := read(filepath.Join(folder, LockFile))
	if err != nil {
		return nil, err
	}
	for _, pin := range pins {
		if locks["registry.opentofu.org/"+pin[1]][pin[2]] == "" {
			return nil, fmt.Errorf("tofu providers lock says nothing of %s %s", pin[1], pin[2])
		}
	}
	return os.ReadFile(filepath.Join(folder, LockFile))
}
