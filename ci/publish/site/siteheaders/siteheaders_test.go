package siteheaders

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/sitetest"
)

// TestGoldenSites fits headers to every site of testdata, as one that is served at https://example.org/.
func TestGoldenSites(t *testing.T) {
	sitetest.Golden(t, "*.txtar", func(t *testing.T, _, dir string) string {
		fitted, cache := mustMake(t, Fitted, dir), t.TempDir()
		for range 2 { // what is found the first time is remembered the second time
			cached, err := Make(t.Context(), Fitted, dir, "https://example.org/", cache)
			if err != nil || !reflect.DeepEqual(cached, fitted) {
				t.Errorf("with a cache: %+v, %v; want %+v", cached, err, fitted)
			}
		}
		return readable(fitted)
	})
}

// readable is the headers, a source of a directive that was fitted a line; what is as in the strict ones is left out.
func readable(h Headers) string {
	var b strings.Builder
	strict := StrictHeaders()
	if h.ContentSecurityPolicy == strict.ContentSecurityPolicy {
		b.WriteString("strict policy\n")
	}
	for part := range strings.SplitSeq(h.ContentSecurityPolicy, "; ") {
		if !strings.Contains(strict.ContentSecurityPolicy, part) {
			fmt.Fprintln(&b, part)
		}
	}
	for _, field := range [][3]string{
		{"X-Frame-Options", h.FrameOptions, strict.FrameOptions},
		{"Cross-Origin-Opener-Policy", h.OpenerPolicy, strict.OpenerPolicy},
		{"Permissions-Policy", h.PermissionsPolicy, strict.PermissionsPolicy},
	} {
		if field[1] != field[2] {
			fmt.Fprintf(&b, "%s: %s\n", field[0], field[1])
		}
	}
	for _, weak := range h.Weak {
		fmt.Fprintf(&b, "weak: %s\n", weak)
	}
	return b.String()
}

func mustMake(t testing.TB, mode Mode, dir string) Headers {
	t.Helper()
	headers, err := Make(t.Context(), mode, dir, "https://example.org/", "")
	if err != nil {
		t.Fatal(err)
	}
	return headers
}

func TestAModeIsReadAndAMisspeltOneIsRefusedWithTheChoices(t *testing.T) {
	for text, want := range map[string]Mode{
		"fitted": Fitted, " Strict\n": Strict, "OFF": Off, "default-src 'self';\n  img-src *": "default-src 'self'; img-src *",
		"upgrade-insecure-requests": "upgrade-insecure-requests", "Script-Src 'none';": "Script-Src 'none';",
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for text, want := range map[string][]string{
		"fited": {`"fited"`, "fitted, strict, off"}, "": {"fitted, strict, off"}, "on": {"fitted, strict, off"},
		"default-src 'self'; scrpt-src x; imgsrc y":               {`"scrpt-src"`, `"imgsrc"`},
		"default-src 'self', script-src *":                        {"comma"},
		"img-src https://bücher.example; default-src 'self'; foo": {"xn--", `"foo"`},
	} {
		_, err := Parse(text)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v does not say %q", text, err, part)
			}
		}
	}
}

func TestOnlyTheFittedModeReadsTheSite(t *testing.T) {
	const missing = "/no/such/folder"
	if _, err := Make(t.Context(), Fitted, missing, "", ""); err == nil {
		t.Error("fitted: no error")
	}
	if got := mustMake(t, Strict, missing); readable(got) != "strict policy\n" || got.FrameOptions != "DENY" {
		t.Errorf("strict: %+v", got)
	}
	if got := mustMake(t, Off, missing); fmt.Sprint(got) != fmt.Sprint(Headers{Mode: "off"}) {
		t.Errorf("off: %+v", got)
	}
	own := mustMake(t, "default-src 'none'", missing)
	if own.Mode != "own" || own.ContentSecurityPolicy != "default-src 'none'" || own.FrameOptions != "DENY" || own.OpenerPolicy != "same-origin" {
		t.Errorf("own: %+v", own)
	}
	if own = mustMake(t, "default-src *; Frame-Ancestors *", missing); own.FrameOptions != "" {
		t.Errorf("own with frame-ancestors: %+v", own)
	}
}

func TestTheSameSiteGivesTheSameHeaders(t *testing.T) {
	dir := t.TempDir()
	for i := range 60 {
		filetest.Write(t, filepath.Join(dir, fmt.Sprintf("p%d/index.html", i)), fmt.Sprintf(`<script>f(%d)</script><style>a{b:%d}</style><b style="c">
			<img src="https://pictures%d.example/x.png"><iframe src="https://frames%d.example/"></iframe>`, i%7, i%5, i%9, i%4))
	}
	first := fmt.Sprintf("%+v", mustMake(t, Fitted, dir))
	for range 20 {
		if again := fmt.Sprintf("%+v", mustMake(t, Fitted, dir)); again != first {
			t.Fatalf("got\n%s\nthen\n%s", first, again)
		}
	}
}

func TestAPolicyFitsAProxysBufferWhateverTheSiteHolds(t *testing.T) {
	page := func(i int) string {
		return fmt.Sprintf(`<script>f(%[1]d)</script><style>a{b:%[1]d}</style><b onclick="g(%[1]d)"><img src="https://pictures%[1]d.example/x.png">
			<iframe src="https://frames%[1]d.example/"></iframe><link rel=stylesheet href="https://styles%[1]d.example/a.css">
			<video src="https://films%[1]d.example/a.mp4"></video><form action="https://forms%[1]d.example/"></form>`, i)
	}
	const room = 4096 - 700 // of a buffer, beside the other fields
	dir := t.TempDir()
	for i := range 400 {
		filetest.Write(t, filepath.Join(dir, fmt.Sprintf("p%d/index.html", i)), page(i))
		if i%40 != 39 && i != 5 {
			continue
		}
		headers := mustMake(t, Fitted, dir)
		if n := len(headers.ContentSecurityPolicy); n > room {
			t.Fatalf("with %d pages the policy has %d bytes: %s", i+1, n, headers.ContentSecurityPolicy)
		}
	}
	headers := mustMake(t, Fitted, dir)
	for _, want := range []string{"script-src 'self' 'unsafe-inline'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data: https:"} {
		if !strings.Contains(headers.ContentSecurityPolicy, want) {
			t.Errorf("no %q in %s", want, headers.ContentSecurityPolicy)
		}
	}
	if strings.Contains(headers.ContentSecurityPolicy, "sha256") {
		t.Errorf("a hash beside 'unsafe-inline' takes its effect: %s", headers.ContentSecurityPolicy)
	}
	if want := "script-src 'unsafe-inline' because of 400 different inline scripts, too many to list in a header, in 400 files, such as p0/index.html"; !slices.Contains(headers.Weak, want) {
		t.Errorf("no %q in %q", want, headers.Weak)
	}
}

func TestWithoutABaseURLTheCanonicalLinkTellsWhatIsTheSitesOwn(t *testing.T) {
	dir := t.TempDir()
	filetest.Write(t, filepath.Join(dir, "index.html"), `<link rel=canonical href="https://blog.example/"><img src="https://blog.example/a.png">`)
	headers, err := Make(t.Context(), Fitted, dir, "", "")
	if err != nil || readable(headers) != "strict policy\n" {
		t.Errorf("%+v, %v", headers, err)
	}
	if _, err := Make(t.Context(), Fitted, dir, "/blog/", ""); err == nil || !strings.Contains(err.Error(), "https://example.org/") {
		t.Errorf("a base URL without a host: %v", err)
	}
}

// jQuery writes the first one behind code that it evaluates.
func TestATextOfAScriptThatNamesNoHostNeedsNothing(t *testing.T) {
	dir := t.TempDir()
	filetest.Write(t, filepath.Join(dir, "index.html"), `<script src="/a.js"></script>`)
	filetest.Write(t, filepath.Join(dir, "a.js"), `add(code + "//# sourceURL=" + name); split("//?"); from("///path")`)
	if got := readable(mustMake(t, Fitted, dir)); got != "strict policy\n" {
		t.Errorf("want the strict policy, got %s", got)
	}
}

// FuzzMarkup asks that no page makes the fitting fail, that all it finds can stand in a header, and that what the
// strict policy allows stays allowed.
func FuzzMarkup(f *testing.F) {
	for _, file := range sitetest.Files(f, "*.txtar") {
		f.Add(file.Data)
	}
	strict := StrictHeaders().ContentSecurityPolicy
	f.Fuzz(func(t *testing.T, content []byte) {
		all := needs{}
		for _, read := range readers {
			d := newDocument(&builtsite.Site{Base: builtsite.UnknownSite}, "index.html")
			read(d, content)
			for wanted := range d.needs {
				all.add(d.file, wanted)
			}
		}
		all.fitBuffer()
		policy := all.policy()
		if _, err := Parse(policy); err != nil {
			t.Errorf("%q: %v", policy, err)
		}
		for part := range strings.SplitSeq(strict, "; ") {
			name, sources, _ := strings.Cut(part, " ")
			at := strings.Index("; "+policy, "; "+name+" ")
			if at < 0 {
				t.Fatalf("no %s in %s", name, policy)
			}
			fitted, _, _ := strings.Cut(policy[at:], ";")
			for source := range strings.FieldsSeq(sources) {
				if source != none && !slices.Contains(strings.Fields(fitted), source) {
					t.Errorf("%s without %s: %s", name, source, policy)
				}
			}
		}
	})
}

func TestAFileIsReadOnceUntilItChanges(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var read []string
	original := readers[".html"]
	defer func() { readers[".html"] = original }()
	readers[".html"] = func(d *document, content []byte) {
		mu.Lock()
		defer mu.Unlock()
		read = append(read, d.file)
		original(d, content)
	}
	expect := func(what, baseURL string, want ...string) Headers {
		t.Helper()
		read = nil
		headers, err := Make(t.Context(), Fitted, dir, baseURL, cache)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(read)
		if !slices.Equal(read, want) {
			t.Errorf("%s: read %q, want %q", what, read, want)
		}
		return headers
	}
	const address = "https://example.org/"
	write("index.html", `<img src="https://one.example/a.png">`)
	write("other.html", `<img src="https://two.example/a.png">`)
	expect("first", address, "index.html", "other.html")
	if h := expect("again", address); !strings.Contains(h.ContentSecurityPolicy, "https://one.example") {
		t.Errorf("a remembered host is missing: %s", h.ContentSecurityPolicy)
	}
	write("index.html", `<img src="https://three.example/a.png">`)
	h := expect("one changed", address, "index.html")
	if !strings.Contains(h.ContentSecurityPolicy, "https://three.example") || strings.Contains(h.ContentSecurityPolicy, "https://one.example") {
		t.Errorf("the policy is of the file before: %s", h.ContentSecurityPolicy)
	}
	expect("at another address", "https://three.example/", "index.html", "other.html")

	files, err := filepath.Glob(filepath.Join(cache, "headers", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the cache holds %q, %v", files, err)
	}
	for _, damage := range []string{"", `{"needs":[]`, `{"documents":3}`} {
		for _, name := range files {
			if err := os.WriteFile(name, []byte(damage), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		expect("damaged by "+damage, address, "index.html", "other.html")
	}
}

func TestASourceWithManyReasonsIsOneSentence(t *testing.T) {
	weak := []string{
		"connect-src https: because of a script of a.example, in a.html",
		"connect-src, img-src https: because of a script of b.example, in 2 files, such as b.html",
		"img-src https: because of a script of c.example, in c.html",
		"style-src 'unsafe-inline' because of MathJax, in d.html",
	}
	want := []string{
		"connect-src, img-src https: for 3 reasons. Examples: a script of a.example, in a.html; a script of b.example, in 2 files, such as b.html. All: CALL",
		weak[3],
	}
	if got := Brief(weak, "CALL"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := Brief(weak[2:], "CALL"); !slices.Equal(got, weak[2:]) {
		t.Errorf("got %q", got)
	}
}
