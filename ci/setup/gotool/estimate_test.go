package gotool

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func load(t *testing.T, name string) Recipe {
	t.Helper()
	recipe, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return recipe
}

func TestEveryRecipeHasARoughDuration(t *testing.T) {
	if figures := slices.Sorted(maps.Keys(roughMinutes)); !slices.Equal(figures, Names()) {
		t.Errorf("there are figures for %q, and recipes %q", figures, Names())
	}
}

func TestWhatIsBuiltIsNotMissing(t *testing.T) {
	builder := Builder{Cache: t.TempDir()}
	if err := os.MkdirAll(builder.Dir(load(t, "tofu")), 0o755); err != nil {
		t.Fatal(err)
	}
	missing, err := builder.Missing("kubernetes", "tofu", "etcd")
	if err != nil || len(missing) != 2 || missing[0].Name != "kubernetes" || missing[1].Name != "etcd" {
		t.Errorf("%v, %v", missing, err)
	}
	if _, err := builder.Missing("nonesuch"); err == nil {
		t.Error("an unknown recipe is taken for a built one")
	}
}

func TestAnEstimateGoesByTheLastBuildHereBeforeTheRoughFigure(t *testing.T) {
	builder := Builder{Cache: t.TempDir()}
	hugo, etcd := load(t, "hugo"), load(t, "etcd")
	rough := func(recipe Recipe) time.Duration {
		return time.Duration(roughMinutes[recipe.Name]) * time.Minute
	}
	if got, want := builder.Estimate(hugo, etcd), (Estimate{Took: rough(hugo) + rough(etcd)}); got != want {
		t.Errorf("before any build: %v, want %v", got, want)
	}
	if err := os.MkdirAll(filepath.Dir(builder.tookFile(hugo)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := builder.record(hugo, 100*time.Minute); err != nil {
		t.Fatal(err)
	}
	hugo.Version = "v0.999.0"
	if got, want := builder.Estimate(hugo), (Estimate{Took: 100 * time.Minute, Measured: true}); got != want {
		t.Errorf("of another version: %v, want %v", got, want)
	}
	if got, want := builder.Estimate(hugo, etcd), (Estimate{Took: 100*time.Minute + rough(etcd)}); got != want {
		t.Errorf("with one that was never built: %v, want %v", got, want)
	}
}

// With the compiler's cache of an earlier build it takes seconds.
func TestABuildOnAKeptCacheIsNotRecorded(t *testing.T) {
	builder := Builder{Cache: t.TempDir(), Scratch: t.TempDir()}
	etcd := load(t, "etcd")
	if err := os.MkdirAll(filepath.Dir(builder.tookFile(etcd)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := builder.record(etcd, time.Second); err != nil {
		t.Fatal(err)
	}
	if got := builder.Estimate(etcd); got.Measured {
		t.Errorf("got %v", got)
	}
}

func TestAnEstimateIsNoMoreExactThanItCanBe(t *testing.T) {
	for want, estimate := range map[string]Estimate{
		"some 1 min on two cores":   {Took: 20 * time.Second},
		"some 3 min, as last time":  {Took: 2*time.Minute + 41*time.Second, Measured: true},
		"some 10 min on two cores":  {Took: 10 * time.Minute},
		"some 15 min on two cores":  {Took: 11 * time.Minute},
		"some 50 min, as last time": {Took: 50 * time.Minute, Measured: true},
	} {
		if got := estimate.String(); got != want {
			t.Errorf("%s: %q, want %q", estimate.Took, got, want)
		}
	}
}
