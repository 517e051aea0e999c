package hugoconfig

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

func load(t *testing.T, files map[string]string) Config {
	t.Helper()
	site := fstest.MapFS{}
	for name, content := range files {
		site[name] = &fstest.MapFile{Data: []byte(content)}
	}
	config, err := LoadFS(site)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestLaterFilesWin(t *testing.T) {
	config := load(t, map[string]string{
		"hugo.toml":                   "contentDir = 'one'\n[taxonomies]\ntag = 'tags'\n",
		"config.yaml":                 "contentDir: never read, hugo.toml is there\n",
		"config/_default/hugo.json":   `{"ContentDir": "two", "title": "Blog"}`,
		"config/production/hugo.yaml": "contentdir: three\n",
		"config/staging/hugo.yaml":    "contentdir: of another environment\n",
	})
	want := Config{"contentdir": "three", "title": "Blog", "taxonomies": map[string]any{"tag": "tags"}}
	if !reflect.DeepEqual(config, want) {
		t.Fatalf("%v", config)
	}
}

func TestAFileOfAConfigurationFolderIsAPart(t *testing.T) {
	config := load(t, map[string]string{
		"config/_default/taxonomies.toml":   "tag = 'Tags'\n",
		"config/_default/languages.de.toml": "Weight = 2\n[taxonomies]\nthema = 'themen'\n",
		"config/_default/params.de.yaml":    "Color: red\n",
		"config/_default/languages.yaml":    "languages: {en: {weight: 1}}\n",
		"config/_default/more/module.json":  `{"mounts": [{"source": "a", "target": "content"}]}`,
	})
	if tags := config.Part("Taxonomies").Text("tag", ""); tags != "Tags" {
		t.Errorf("taxonomies %q", tags)
	}
	german := config.Part("languages").Part("de")
	if german.Part("taxonomies").Text("thema", "") != "themen" || german.Part("params").Text("color", "") != "red" {
		t.Errorf("languages.de %v", german)
	}
	if config.Part("languages").Part("en") == nil {
		t.Errorf("languages %v", config.Part("languages"))
	}
	if mounts := config.Part("module").Parts("mounts"); len(mounts) != 1 || mounts[0].Text("source", "") != "a" {
		t.Errorf("mounts %v", mounts)
	}
}

func TestTheFormatsGiveTheSameSettings(t *testing.T) {
	want := Config{"list": []any{"a", "b"}, "tables": []any{map[string]any{"key": "x"}}, "on": true}
	for extension, text := range map[string]string{
		".toml": "List = ['a', 'b']\non = true\n[[tables]]\nKey = 'x'\n",
		".yaml": "List: [a, b]\non: true\ntables: [{Key: x}]\n",
		".json": `{"List": ["a", "b"], "on": true, "tables": [{"Key": "x"}]}`,
	} {
		if got, err := Decode(extension, []byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", extension, got, err)
		}
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	_, err := LoadFS(fstest.MapFS{"config/_default/params.toml": {Data: []byte("= no\n")}})
	if err == nil || !strings.HasPrefix(err.Error(), "config/_default/params.toml: ") {
		t.Fatalf("error = %v", err)
	}
}

func TestTheMainLanguageIsTheOneThatIsNamedElseEnglishElseTheFirst(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "en",
		`defaultContentLanguage = "pt-BR"`: "pt-br",
		"defaultContentLanguage = 'de'\n[languages.en]\n[languages.de]":                  "de",
		"[languages.de]\nweight = 1\n[languages.en]\nweight = 2":                         "en",
		"[languages.fr]\n[languages.it]\nweight = 1":                                     "it",
		"defaultContentLanguage = 'it'\n[languages.fr]\n[languages.it]\ndisabled = true": "fr",
		"disableLanguages = ['en']\n[languages.en]\n[languages.de]":                      "de",
	} {
		config, err := Decode(".toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := config.MainLanguage(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
