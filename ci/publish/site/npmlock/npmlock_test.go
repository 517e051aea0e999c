package npmlock

import (
	"slices"
	"testing"
)

const monorepo = `{"lockfileVersion": 3, "packages": {
	"": {"workspaces": ["website", "packages/*"], "devDependencies": {"postcss-cli": "11"}},
	"website": {"name": "site", "dependencies": {"@me/ui": "*", "alpinejs": "3"}},
	"packages/ui": {"name": "@me/ui", "dependencies": {"@me/tokens": "*"}},
	"packages/tokens": {"name": "@me/tokens", "version": "1.0.0"},
	"packages/app": {"name": "@me/app", "dependencies": {"@me/ui": "*"}},
	"node_modules/site": {"resolved": "website", "link": true},
	"node_modules/@me/ui": {"resolved": "packages/ui", "link": true},
	"packages/ui/node_modules/@me/tokens": {"resolved": "packages/tokens", "link": true},
	"node_modules/@me/app": {"resolved": "packages/app", "link": true},
	"node_modules/alpinejs": {"version": "3.0.0", "resolved": "https://npm.example.org/alpinejs/-/alpinejs-3.0.0.tgz", "dependencies": {}}
}}`

func TestALockNamesTheFoldersItLinksTo(t *testing.T) {
	lock, err := Parse([]byte(monorepo))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lock.Folders(), []string{"packages/app", "packages/tokens", "packages/ui", "website"}; !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
	for folder, want := range map[string][]string{"website": {"packages/tokens", "packages/ui"}, "": nil, "packages/tokens": nil} {
		if got := lock.Needed(folder); !slices.Equal(got, want) {
			t.Errorf("%q needs %v, want %v", folder, got, want)
		}
	}
}

func TestALockOfTheFirstVersionIsRead(t *testing.T) {
	lock, err := Parse([]byte(`{"lockfileVersion": 1, "dependencies": {"a": {"version": "1.0.0", "requires": {"b": "1"}, "dependencies": {"b": {"version": "1.0.0"}}}}}`))
	if err != nil || lock.Dependencies["a"].Version != "1.0.0" || len(lock.Folders()) != 0 {
		t.Fatalf("%v, %v", lock, err)
	}
}
