package mirror

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/setup/images"
)

// toolList has a tool's image in a group beside what publishing pulls.
func toolList() images.List {
	platforms := []string{"linux/amd64"}
	return append(theList(),
		images.Image{Key: "etcd", Name: "registry.k8s.io/etcd", Tag: "3.6.8-0", Platforms: platforms, StandIn: images.StandInTool, Group: "create"},
		images.Image{Key: "opentofu", Name: "ghcr.io/opentofu/opentofu", Tag: "3.6.8-minimal", Platforms: platforms, StandIn: images.StandInTool, Group: "other"},
	)
}

// toolBuilder is a builder for some groups of toolList, which notes the tools that it asks for.
func (w *workshop) toolBuilder(cache string, asked *[]string, groups ...string) *builder {
	b := w.builder(cache, toolList())
	b.Groups = groups
	b.Tools = func(_ context.Context, name string) (map[string]string, error) {
		*asked = append(*asked, name)
		recipe, err := gotool.Load(name)
		programs := map[string]string{}
		for program := range recipe.Binaries {
			programs[program] = w.write("tools/"+name+"/"+program, program+" of "+name)
		}
		for kept := range recipe.Files {
			if path.Ext(kept) == "" { // a folder
				kept += "/file.yaml"
			}
			w.write("tools/"+name+"/"+kept, strings.TrimSuffix(kept, "/file.yaml")+" of "+name)
		}
		return programs, err
	}
	b.version = func(_, module string) (string, error) {
		if module == hugoModule {
			return w.version, nil
		}
		return "v3.6.8", nil
	}
	return b
}

func TestStandInsOfToolsFitTheirRecipes(t *testing.T) {
	list, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for key, tool := range toolImages {
		image, err := list.Get(key)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, program := range tool.programs {
			recipe, err := gotool.Load(program.tool)
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			if _, ok := recipe.Binaries[program.name]; !ok {
				t.Errorf("%s: the recipe of %s builds no %s", key, program.tool, program.name)
			}
			if i == 0 && (recipe.Module != tool.module || !tagged(image.Tag, recipe.Version)) {
				t.Errorf("%s: images.yaml has the tag %s, the recipe builds %s %s for %s", key, image.Tag, recipe.Module, recipe.Version, tool.module)
			}
		}
	}
}

func TestAGroupIsMadeOnlyWhereItIsAskedFor(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	var asked []string
	w.expect(w.toolBuilder(cache, &asked), "golang", "hugo", "nginx")
	if !slices.Equal(asked, []string{"hugo"}) {
		t.Errorf("asked for the tools %v", asked)
	}
	w.expect(w.toolBuilder(cache, &asked, "create"), "etcd")
	if !slices.Equal(asked, []string{"hugo", "hugo", "etcd"}) {
		t.Errorf("asked for the tools %v", asked)
	}
	// Without the group again, what was made stays.
	w.expect(w.toolBuilder(cache, &asked))
	w.expect(w.toolBuilder(cache, &asked, "create"))
}

func TestAnUnknownGroupIsAnErrorThatNamesTheKnownOnes(t *testing.T) {
	var asked []string
	_, err := newWorkshop(t).toolBuilder(t.TempDir(), &asked, "craete").build(context.Background())
	if err == nil || !strings.Contains(err.Error(), `no group "craete"; it has create, other`) {
		t.Errorf("got %v", err)
	}
}

func TestTheStandInOfAToolHoldsItsProgramAndNeedsNoDebian(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	var asked []string
	b := w.toolBuilder(cache, &asked, "create")
	b.List = b.List[4:5]
	w.failRoots = errors.New("asked for a root")
	w.expect(b, "etcd")
	image := pulled(t, cache, b.List[0])
	got := files(t, image)
	if len(got) != 2 || got["usr/local/bin/etcd"] != "755:etcd of etcd" || got["tmp/"] != "1777:" && got["tmp"] != "1777:" {
		t.Errorf("it holds %v", got)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if made := config.Config.Labels[LabelMadeFrom]; made != "etcd v3.6.8 from Go modules" {
		t.Errorf("it says that it was made from %q", made)
	}
}

func TestTheOpenTofuStandInHoldsWhatCannotBeDownloaded(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	var asked []string
	b := w.toolBuilder(cache, &asked, "other")
	b.List = b.List[5:]
	w.expect(b, "opentofu")
	got := files(t, pulled(t, cache, b.List[0]))
	below := "hashicorp/helm/3.2.0/" + platformFolder
	folder, link := providersFolder+"/registry.opentofu.org/"+below, providersFolder+"/registry.terraform.io/"+below
	for name, want := range map[string]string{
		"usr/local/bin/tofu":                                  "755:tofu of tofu",
		"usr/local/bin/terragrunt":                            "755:terragrunt of terragrunt",
		folder + "/terraform-provider-helm_v3.2.0":            "755:terraform-provider-helm of provider-helm",
		toolsFolder + "/metallb/charts/metallb/file.yaml":     "644:charts/metallb of metallb",
		toolsFolder + "/helm-controller/config/crd/file.yaml": "644:config/crd of helm-controller",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, ok := got[toolsFolder+"/metallb/controller"]; ok {
		t.Error("MetalLB's program is there")
	}
	if at := path.Join(path.Dir(link), strings.TrimPrefix(got[link], "777:")); at != folder {
		t.Errorf("%s leads to %s, want %s", link, at, folder)
	}
}

func TestAToolOfAnotherVersionThanTheListsIsRefused(t *testing.T) {
	var asked []string
	b := newWorkshop(t).toolBuilder(t.TempDir(), &asked, "create")
	b.List = b.List[4:5]
	b.version = func(string, string) (string, error) { return "v3.6.80", nil }
	if _, err := b.build(context.Background()); err == nil || !strings.Contains(err.Error(), "etcd v3.6.80, but images.yaml wants 3.6.8-0") {
		t.Errorf("got %v", err)
	}
}

func TestChangedKeptFilesMakeTheImageAnew(t *testing.T) {
	w, cache := newWorkshop(t), t.TempDir()
	var asked []string
	b := w.toolBuilder(cache, &asked, "other")
	b.List = b.List[5:]
	w.expect(b, "opentofu")
	w.expect(b)
	w.write("tools/metallb/charts/metallb/more.yaml", "more")
	w.expect(b, "opentofu")
}

func TestTheToolsOfAListAreThoseThatBuildAsksFor(t *testing.T) {
	w := newWorkshop(t)
	var asked []string
	b := w.toolBuilder(t.TempDir(), &asked, "create", "other")
	w.expect(b, "golang", "hugo", "nginx", "etcd", "opentofu")
	var once []string
	for _, tool := range asked {
		if !slices.Contains(once, tool) {
			once = append(once, tool)
		}
	}
	if tools := Tools(b.List); !slices.Equal(tools, once) {
		t.Errorf("%q, but Build asks for %q", tools, once)
	}
	if tools := Tools(theList()); !slices.Equal(tools, []string{"hugo"}) {
		t.Errorf("publishing needs %q", tools)
	}
}
