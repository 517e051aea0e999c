package ci

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keys open a cluster, or tell all about it. People keep them where they work, and castle prints two of them.
var keys = []string{"*.agekey", "*.tfstate*", "kubeconfig", "talosconfig"}

// needed are the files of a cluster's folder without which castle cannot work on it.
var needed = []string{"cluster.yaml", "secrets.sops.yaml", "pve-root-ca.pem", "terragrunt.hcl", "world.yaml", "age.key"}

// volumeName is what a cache volume is called by in the code.
var volumeName = regexp.MustCompile(`dag\.CacheVolume\((.*?)\)`)

var ignoredName = regexp.MustCompile(`"\*\*/([^"]+)"`)

// The functions repeat the list of what they do not take of a clusters' folder, since a pragma is a literal.
func TestWhatOpensAClusterIsNotUploaded(t *testing.T) {
	files, err := filepath.Glob("../.dagger/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.Contains(line, "+ignore=[") || strings.Contains(line, `+ignore=["*"`) { // the others name what they take
				continue
			}
			lists++
			for _, key := range keys {
				if !strings.Contains(line, `"**/`+key+`"`) {
					t.Errorf("%s:%d takes %s along", filepath.Base(file), i+1, key)
				}
			}
			for _, ignored := range ignoredName.FindAllStringSubmatch(line, -1) {
				for _, name := range needed {
					if left, err := path.Match(ignored[1], name); left || err != nil {
						t.Errorf("%s:%d leaves %s out (%v)", filepath.Base(file), i+1, name, err)
					}
				}
			}
		}
	}
	if lists < 10 {
		t.Errorf("only %d lists were found: does this test still read what it should?", lists)
	}
}

// Two clusters on one engine share nothing that is kept between calls.
func TestWhatIsKeptOfAClusterBearsItsName(t *testing.T) {
	files, err := filepath.Glob("../.dagger/*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared := map[string]bool{
		"castle-go-mod": true, "castle-go-build": true, // what compiles castle
		"castle-handover": true, // results on their way from one container of a call to another, each in a file of its own
	}
	volumes := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range volumeName.FindAllStringSubmatch(string(text), -1) {
			volumes++
			switch name := found[1]; {
			case filepath.Base(file) == "cluster.go" && name == "name": // see below
			case filepath.Base(file) == "blog.go": // see TestBuildsForAPublishShareNoCacheWithOthers
			case !shared[strings.Trim(name, `"`)]:
				t.Errorf("%s names the cache volume %s: a cluster's are made by described.volume", filepath.Base(file), name)
			}
		}
	}
	text, err := os.ReadFile("../.dagger/cluster.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `name := "castle-" + what + "-" + d.name`) || volumes != 5 {
		t.Errorf("%d volumes were found: does this test still read what it should?", volumes)
	}
}

// What a build leaves for the next one is kept apart by what it is for and by the site, since builds run code of the
// site's and a pull request's.
func TestBuildsForAPublishShareNoCacheWithOthers(t *testing.T) {
	text, err := os.ReadFile("../.dagger/blog.go")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "dag.CacheVolume("); got != 1 {
		t.Errorf("blog.go names a cache volume in %d places; only cached knows whom it may be shared with", got)
	}
	if !strings.Contains(string(text), `dag.CacheVolume("castle-"+string(b.use)+"-"+name+"-"+export.Cache)`) {
		t.Error("the caches of builds are not named by their use and their site")
	}
	if got := strings.Count(string(text), "b.cached(export, "); got != 3 {
		t.Errorf("%d caches of builds were found: does this test still read what it should?", got)
	}
	for file, uses := range map[string]int{"check.go": 0, "serve.go": 0, "publish.go": 1} {
		text, err := os.ReadFile("../.dagger/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), "toPublish"); got != uses {
			t.Errorf("%s builds to publish in %d places, want %d", file, got, uses)
		}
	}
}
