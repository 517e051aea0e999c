package gotool

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// roughMinutes are what a recipe's build takes on two cores, rounded up. They do not stand in the recipes, whose digests
// would change with them. Measured where all are built in one Batch, in the order in which `castle mirror build --group
// create` needs them: what two of them share counts with the first.
var roughMinutes = map[string]int{
	"dagger":                  4,
	"hugo":                    3,
	"tofu":                    5,
	"terragrunt":              4,
	"provider-helm":           1,
	"provider-kubectl":        1,
	"provider-kubernetes":     2,
	"provider-proxmox":        1,
	"metallb":                 4,
	"external-secrets":        11,
	"source-controller":       6,
	"kustomize-controller":    3,
	"helm-controller":         2,
	"notification-controller": 3,
	"etcd":                    1,
	"kubernetes":              8,
	"versitygw":               4,
	"cosign":                  8,
	"talos":                   6,
	"containerd":              3,
	"kubelet":                 3,
	"coredns":                 3,
	"flannel":                 2,
	"flannel-cni":             1,
	"metallb-speaker":         1,
}

// Estimate says how long something that is not built yet will take.
type Estimate struct {
	Took time.Duration
	// Measured: on this machine, by earlier builds; else on two cores.
	Measured bool
}

func (e Estimate) String() string {
	minutes := int(math.Ceil(e.Took.Minutes()))
	if minutes > 10 {
		minutes = (minutes + 4) / 5 * 5
	}
	if e.Measured {
		return fmt.Sprintf("some %d min, as last time", minutes)
	}
	return fmt.Sprintf("some %d min on two cores", minutes)
}

// Missing are the recipes of these names that are not built yet, in the same order.
func (b Builder) Missing(names ...string) ([]Recipe, error) {
	var missing []Recipe
	for _, name := range names {
		recipe, err := Load(name)
		if err != nil {
			return nil, err
		}
		if !isDir(b.Dir(recipe)) {
			missing = append(missing, recipe)
		}
	}
	return missing, nil
}

// Estimate is how long building these recipes takes, one after the other: as long as each did the last time, in whatever
// version, or else a rough figure.
func (b Builder) Estimate(recipes ...Recipe) Estimate {
	total := Estimate{Measured: true}
	for _, recipe := range recipes {
		took, err := b.took(recipe)
		if err != nil {
			took, total.Measured = time.Duration(roughMinutes[recipe.Name])*time.Minute, false
		}
		total.Took += took
	}
	return total
}

// tookFile remembers how long the last build of a recipe took, beside the versions that were built.
func (b Builder) tookFile(recipe Recipe) string { return filepath.Join(b.Cache, recipe.Name, "took") }

func (b Builder) took(recipe Recipe) (time.Duration, error) {
	data, err := os.ReadFile(b.tookFile(recipe))
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(string(data))
}

// record remembers how long a build took, unless its compiler's cache is one that is kept: that may have had everything.
func (b Builder) record(recipe Recipe, took time.Duration) error {
	if b.Scratch != "" {
		return nil
	}
	return os.WriteFile(b.tookFile(recipe), []byte(took.String()), 0o644)
}
