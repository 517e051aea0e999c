package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// programs looks for those that run the layers.
func programs(ctx context.Context, s *inspection) []finding {
	tools := s.cluster.Tools
	var versions [2]string
	var wrong [2][]finding
	var wait sync.WaitGroup
	for i, one := range []struct {
		name, program, tool, flag string
		arguments                 []string
		version                   func(string) string
	}{
		{"OpenTofu", tools.Tofu, "tofu", "--tofu-program", []string{"version", "-json"}, tofuVersion},
		{"Terragrunt", tools.Terragrunt, "terragrunt", "--terragrunt-program", []string{"--version"}, lastWord},
	} {
		wait.Go(func() {
			said, err := output(ctx, one.program, one.arguments...)
			if err != nil {
				wrong[i] = []finding{{Failed, fmt.Sprintf("%s does not run: %v", one.name, err),
					fmt.Sprintf("build it with castle tool %s, which prints its folder, and put that into PATH, or name the program with %s", one.tool, one.flag)}}
				return
			}
			versions[i] = one.name + " " + one.version(said)
		})
	}
	wait.Wait()
	if found := slices.Concat(wrong[0], wrong[1]); found != nil {
		return found
	}
	return ok("%s, %s", versions[0], versions[1])
}

// output runs a program that gets none of this process's secrets: the age key is in its environment.
func output(ctx context.Context, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "CHECKPOINT_DISABLE=1"}
	said, err := command.Output()
	return string(said), err
}

func tofuVersion(said string) string {
	var known struct {
		Version string `json:"terraform_version"`
	}
	if json.Unmarshal([]byte(said), &known) != nil {
		return "of an unknown version"
	}
	return known.Version
}

func lastWord(said string) string {
	words := strings.Fields(said)
	if len(words) == 0 {
		return "of an unknown version"
	}
	return words[len(words)-1]
}
