package siteimage

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/porttest"
	"tazlab.net/castle/ci/publish/site/siteheaders"
	"tazlab.net/castle/ci/test/needs"
)

func TestTheConfigurationNamesNothingOfTheBase(t *testing.T) {
	o := newOptions(t, filetest.New(t, smallSite()))
	o.Port = 8080
	image, report := mustBuild(t, o)
	found := entries(t, image, report)
	conf := found["etc/nginx/nginx.conf"].content
	for _, want := range []string{
		"listen 8080;", "include /proc/sys/net/ipv6/../../../../etc/nginx/listen-ipv6.con[f];", "pid /dev/shm/nginx-8080.pid;",
		"root /srv/www;", `"~^/it/" "/it/404.html";`, `default "/404.html";`, "access_log /dev/stdout site;", "default-src 'self'",
	} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %q in the configuration", want)
		}
	}
	for _, unwanted := range []string{"\nuser ", "mime.types", "conf.d", "<no value>", "/var/"} {
		if strings.Contains(conf, unwanted) {
			t.Errorf("%q in the configuration", unwanted)
		}
	}
	if got := found["etc/nginx/listen-ipv6.conf"].content; got != "listen [::]:8080 ipv6only=on;\n" {
		t.Errorf("listen-ipv6.conf: %q", got)
	}
	if e := found["etc/nginx/nginx.conf"]; e.layer != "server" {
		t.Errorf("the configuration is in the layer %s", e.layer)
	}
}

// nginx is a running nginx with the configuration and the site of an image, both moved below a folder.
type nginx struct {
	url     string
	port    int
	logFile string
	publish func(files map[string]string) // puts another content in place
}

type nginxOptions struct {
	files    map[string]string
	base     v1.Image // nil: newBase
	noIPv6   bool
	language string               // the site's default one
	path     string               // below which the site is
	user     uint32               // 0: as who runs the test
	headers  *siteheaders.Headers // nil: the strict ones
}

func lookUpNginx(t *testing.T) string {
	t.Helper()
	return needs.Command(t, "nginx-light", "nginx")
}

// startNginx builds an image, unpacks our layers as a container runtime does, and starts nginx on them.
func startNginx(t *testing.T, o nginxOptions) *nginx {
	t.Helper()
	program := lookUpNginx(t)
	// Not t.TempDir, whose parents only the owner may enter, for the tests as another user.
	dir, err := os.MkdirTemp("", "siteimage-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	scratch := filepath.Join(dir, "scratch")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(scratch, 0), os.Chmod(scratch, 0o777)); err != nil {
		t.Fatal(err)
	}
	n := &nginx{port: porttest.Free(t, "127.0.0.1")}
	n.url = fmt.Sprintf("http://127.0.0.1:%d", n.port)
	options := newOptions(t, filetest.New(t, o.files))
	options.Port, options.Language = n.port, o.language
	options.Path = cmp.Or(o.path, "/")
	if o.base != nil {
		options.Base = o.base
	}
	if o.headers != nil {
		options.Headers = *o.headers
	}
	publish := func() {
		image, report := mustBuild(t, options)
		unpack(t, image, report, dir)
	}
	publish()
	n.publish = func(files map[string]string) {
		options.Site = filetest.New(t, files)
		publish()
	}

	s, err := scan(t.Context(), options.Site)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	settings, err := imageSettings(options, s)
	if err != nil {
		t.Fatal(err)
	}
	settings.Root, settings.ConfDir = filepath.Join(dir, siteDir), filepath.Join(dir, "etc/nginx")
	settings.Scratch, settings.AccessLog = scratch, filepath.Join(scratch, "access.log")
	if o.noIPv6 {
		settings.IPv6Probe = filepath.Join(dir, "no/such/folder")
	}
	moved, err := settings.files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range moved {
		r, err := f.open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, filepath.Join(settings.ConfDir, f.path), string(content))
	}

	command := exec.Command(program, "-e", "stderr", "-g", "daemon off;", "-c", filepath.Join(settings.ConfDir, "nginx.conf"))
	command.Dir = "/"
	if o.user != 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.user, Gid: o.user}}
	}
	n.run(t, command)
	return n
}

// run starts nginx, waits until it listens, and ends it with the test.
func (n *nginx) run(t *testing.T, command *exec.Cmd) {
	t.Helper()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	command.Stderr, n.logFile = stderr, stderr.Name()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		if command.Process.Signal(syscall.SIGQUIT) == nil {
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("nginx did not end after SIGQUIT")
				command.Process.Kill()
				<-ended
			}
		}
		if t.Failed() {
			t.Logf("nginx: %s", n.log(t))
		}
	})
	deadline := time.After(10 * time.Second)
	for {
		if connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port)); err == nil {
			connection.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("nginx ended: %v: %s", err, n.log(t))
		case <-deadline:
			t.Fatal("nginx does not listen")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// unpack writes our layers' files with their modes and times.
func unpack(t *testing.T, image v1.Image, report Report, dir string) {
	t.Helper()
	for name, e := range entries(t, image, report) {
		path := filepath.Join(dir, name)
		if e.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		filetest.Write(t, path, e.content)
		if err := errors.Join(os.Chmod(path, os.FileMode(e.Mode)), os.Chtimes(path, e.ModTime, e.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
}

// log is what nginx wrote to standard error so far.
func (n *nginx) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(n.logFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// get sends a request without following redirects and without the client's own handling of compression.
func (n *nginx) get(t *testing.T, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", n.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestNginxServesTheSite(t *testing.T) {
	files := smallSite()
	n := startNginx(t, nginxOptions{files: files})
	style := "/css/main.min." + strings.Repeat("0a", 32) + ".css"
	const immutable = "public, max-age=31536000, immutable"
	for _, c := range []struct {
		path, accept string
		status       int
		contentType  string
		cache        string
		body         string
	}{
		{"/", "", 200, "text/html; charset=utf-8", "no-cache", files["index.html"]},
		{"/articles/one/", "", 200, "text/html; charset=utf-8", "no-cache", files["articles/one/index.html"]},
		{"/articles/one/?x=y", "", 200, "text/html; charset=utf-8", "no-cache", files["articles/one/index.html"]},
		{"/%C3%9Cbersicht/", "", 200, "text/html; charset=utf-8", "no-cache", files["Übersicht/index.html"]},
		{"/index.xml", "", 200, "text/xml; charset=utf-8", "no-cache", files["index.xml"]},
		{"/robots.txt", "", 200, "text/plain; charset=utf-8", "no-cache", files["robots.txt"]},
		{"/empty.txt", "", 200, "text/plain; charset=utf-8", "no-cache", ""},
		{"/favicon.svg", "", 200, "image/svg+xml; charset=utf-8", "public, max-age=3600", files["favicon.svg"]},
		{"/font.woff2", "", 200, "font/woff2", "public, max-age=3600", files["font.woff2"]},
		{style, "", 200, "text/css; charset=utf-8", immutable, files[style[1:]]},
		{"/articles/one/cover_hu_0123456789abcdef.webp", "", 200, "image/webp", immutable, files["articles/one/cover_hu_0123456789abcdef.webp"]},
		{"/healthz", "", 200, "text/plain; charset=utf-8", "no-cache", "ok\n"},
		{"/articles/one", "", 301, "", "no-cache", ""},
		{"/missing/", "", 404, "text/html; charset=utf-8", "no-cache", files["404.html"]},
		{"/it/mancante", "", 404, "text/html; charset=utf-8", "no-cache", files["it/404.html"]},
		{"/italy", "", 404, "text/html; charset=utf-8", "no-cache", files["404.html"]},
		{"/css/old.min." + strings.Repeat("0b", 32) + ".css", "", 404, "text/html; charset=utf-8", "no-cache", files["404.html"]},
		{"/css/", "", 404, "text/html; charset=utf-8", "no-cache", files["404.html"]},
		{"/../../etc/nginx/nginx.conf", "", 400, "", "", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			resp, body := n.get(t, c.path)
			if resp.StatusCode != c.status {
				t.Fatalf("status %s, want %d", resp.Status, c.status)
			}
			if got := resp.Header.Get("Content-Type"); c.contentType != "" && got != c.contentType {
				t.Errorf("content type %q, want %q", got, c.contentType)
			}
			if got := resp.Header.Get("Cache-Control"); c.cache != "" && got != c.cache {
				t.Errorf("Cache-Control %q, want %q", got, c.cache)
			}
			if c.contentType != "" && body != c.body {
				t.Errorf("%d bytes, want %d", len(body), len(c.body))
			}
			if got := resp.Header.Get("Server"); got != "nginx" {
				t.Errorf("Server %q tells more than the name", got)
			}
			if got := resp.Header.Get("Last-Modified"); got != "" {
				t.Errorf("Last-Modified %q is no date", got)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": siteheaders.StrictHeaders().ContentSecurityPolicy, "X-Content-Type-Options": "nosniff",
				"X-Frame-Options": "DENY", "Referrer-Policy": "strict-origin-when-cross-origin", "Cross-Origin-Opener-Policy": "same-origin",
				"Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
			} {
				if got := resp.Header.Values(name); c.status != 400 && (len(got) != 1 || got[0] != want) {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
		})
	}
	resp, _ := n.get(t, "/articles/one")
	if got := resp.Header.Get("Location"); got != "/articles/one/" {
		t.Errorf("redirect to %q, want the path only", got)
	}
	if strings.Contains(n.log(t), "[warn]") || strings.Contains(n.log(t), "[emerg]") {
		t.Errorf("nginx complains: %s", n.log(t))
	}
}

func TestNginxSendsTheCompressedVariant(t *testing.T) {
	files := smallSite()
	n := startNginx(t, nginxOptions{files: files})
	plain, _ := n.get(t, "/")
	for _, via := range []string{"", "1.1 proxy"} {
		resp, body := n.get(t, "/", "Accept-Encoding", "br, gzip", "Via", via)
		if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" || len(body) >= len(files["index.html"]) {
			t.Errorf("via %q: encoding %q, vary %q, %d bytes", via, resp.Header.Get("Content-Encoding"), resp.Header.Get("Vary"), len(body))
		}
		if plain.Header.Get("ETag") == resp.Header.Get("ETag") {
			t.Error("both variants have one ETag")
		}
	}
	if plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("plain: encoding %q, vary %q", plain.Header.Get("Content-Encoding"), plain.Header.Get("Vary"))
	}
	resp, body := n.get(t, "/robots.txt", "Accept-Encoding", "gzip")
	if resp.Header.Get("Content-Encoding") != "" || body != files["robots.txt"] {
		t.Errorf("robots.txt has no variant, and came with the encoding %q", resp.Header.Get("Content-Encoding"))
	}
}

func TestAnETagHoldsUntilTheContentChangesEvenAtTheSameSize(t *testing.T) {
	files := smallSite()
	n := startNginx(t, nginxOptions{files: files})
	for _, encoding := range []string{"identity", "gzip"} {
		first, _ := n.get(t, "/", "Accept-Encoding", encoding)
		tag := first.Header.Get("ETag")
		if !strings.HasPrefix(tag, `"`) {
			t.Fatalf("%s: ETag %q", encoding, tag)
		}
		resp, body := n.get(t, "/", "Accept-Encoding", encoding, "If-None-Match", tag)
		if resp.StatusCode != 304 || body != "" || resp.Header.Get("ETag") != tag || resp.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s, unchanged: %s with ETag %s, Cache-Control %q", encoding, resp.Status, resp.Header.Get("ETag"), resp.Header.Get("Cache-Control"))
		}
		resp, _ = n.get(t, "/missing", "If-None-Match", tag)
		if resp.StatusCode != 404 {
			t.Errorf("missing: %s", resp.Status)
		}

		files["articles/two/index.html"] += "elsewhere"
		n.publish(files)
		resp, _ = n.get(t, "/", "Accept-Encoding", encoding, "If-None-Match", tag)
		if resp.StatusCode != 304 {
			t.Errorf("%s, published again with the same home page: %s", encoding, resp.Status)
		}

		files["index.html"] = strings.Replace(files["index.html"], "home", map[string]string{"identity": "hone", "gzip": "bome"}[encoding], 1)
		n.publish(files)
		resp, _ = n.get(t, "/", "Accept-Encoding", encoding, "If-None-Match", tag)
		if resp.StatusCode != 200 || resp.Header.Get("ETag") == tag {
			t.Errorf("%s, changed at the same size: %s, ETag %s", encoding, resp.Status, resp.Header.Get("ETag"))
		}
		files["index.html"] = smallSite()["index.html"]
		n.publish(files)
	}
}

func TestNginxSendsAHeaderAsItIsWrittenAndNoneThatIsEmpty(t *testing.T) {
	long := "default-src 'self'; img-src" + strings.Repeat(" https://pictures.example/$1/\\/\"x\"", 90)
	for name, headers := range map[string]siteheaders.Headers{
		"none":         {},
		"delegated":    {PermissionsPolicy: `camera=(self "https://meet.example"), usb=()`, FrameOptions: "SAMEORIGIN"},
		"special":      {ContentSecurityPolicy: `script-src 'self' https://a.example/$x/${y}/\z/"q"/{};#`},
		"long":         {ContentSecurityPolicy: long, OpenerPolicy: "same-origin-allow-popups"},
		"looks like a": {ContentSecurityPolicy: "sandbox; # not a comment"},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNginx(t, nginxOptions{files: smallSite(), headers: &headers})
			for _, path := range []string{"/", "/missing"} {
				resp, _ := n.get(t, path)
				for field, want := range map[string]string{
					"Content-Security-Policy": headers.ContentSecurityPolicy, "X-Frame-Options": headers.FrameOptions,
					"Cross-Origin-Opener-Policy": headers.OpenerPolicy, "Permissions-Policy": headers.PermissionsPolicy,
					"X-Content-Type-Options": "nosniff", "Referrer-Policy": "strict-origin-when-cross-origin",
				} {
					got, sent := resp.Header[field]
					if sent != (want != "") || sent && got[0] != want {
						t.Errorf("%s: %s %q, want %q", path, field, got, want)
					}
				}
			}
		})
	}
}

func TestNginxRunsAsAnyUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every other test of this file runs as this user, who is not root")
	}
	n := startNginx(t, nginxOptions{files: smallSite(), user: 65532})
	if resp, _ := n.get(t, "/"); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}
	if strings.Contains(n.log(t), "[") {
		t.Errorf("nginx complains: %s", n.log(t))
	}
}

func TestNginxListensOnIPv6WhereTheKernelHasIt(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil {
		t.Skip("this kernel has no IPv6")
	}
	for _, without := range []bool{false, true} {
		n := startNginx(t, nginxOptions{files: smallSite(), noIPv6: without})
		if resp, _ := n.get(t, "/"); resp.StatusCode != 200 {
			t.Errorf("IPv4: %s", resp.Status)
		}
		connection, err := net.Dial("tcp", net.JoinHostPort("::1", strconv.Itoa(n.port)))
		if err == nil {
			connection.Close()
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Log("the loopback device has no IPv6 address: not tried")
		} else if (err == nil) == without {
			t.Errorf("IPv6 with the probe missing %t: %v", without, err)
		}
	}
}

func TestASiteWithoutItsOwn404PageAnswers404(t *testing.T) {
	n := startNginx(t, nginxOptions{files: map[string]string{"index.html": "home", "css/a.css": "a{}"}, headers: &siteheaders.Headers{ContentSecurityPolicy: "default-src 'none'"}})
	for _, path := range []string{"/missing", "/css/", "/old." + strings.Repeat("0b", 32) + ".css"} {
		resp, body := n.get(t, path)
		if resp.StatusCode != 404 || body != "not found\n" || resp.Header.Get("Cache-Control") != "no-cache" || resp.Header.Get("Content-Security-Policy") != "default-src 'none'" {
			t.Errorf("%s: %s %q %v", path, resp.Status, body, resp.Header)
		}
	}
}

func TestTheDefaultLanguages404PageAnswersEverythingElse(t *testing.T) {
	files := map[string]string{
		"index.html": "to /en/", "de/index.html": "Heim", "en/index.html": "home", "de/404.html": "nicht da", "en/404.html": "not here",
	}
	for _, c := range []struct{ language, path, want string }{
		{"en", "/nope", "not here"}, {"en", "/en/nope", "not here"}, {"en", "/de/nope", "nicht da"}, {"en", "/entry", "not here"},
		{"de", "/nope", "nicht da"}, {"de", "/en/nope", "not here"},
		{"fr", "/nope", "not found\n"}, {"", "/nope", "not found\n"},
	} {
		n := startNginx(t, nginxOptions{files: files, language: c.language})
		if resp, body := n.get(t, c.path); resp.StatusCode != 404 || body != c.want {
			t.Errorf("%s where %q is the default: %s %q, want %q", c.path, c.language, resp.Status, body, c.want)
		}
	}
	files["404.html"] = "the site's own"
	n := startNginx(t, nginxOptions{files: files, language: "en"})
	if _, body := n.get(t, "/nope"); body != files["404.html"] {
		t.Errorf("a page at the root counts first, got %q", body)
	}
}

func TestASiteBelowAPathIsServedThereAndWhereAProxyStripsThePath(t *testing.T) {
	files := smallSite()
	files["a b%?ü/index.html"], files["blog/index.html"] = "odd", "a section of the path's name"
	files[".well-known/matrix/server"] = "{}"
	style := "/css/main.min." + strings.Repeat("0a", 32) + ".css"
	for _, at := range []string{"/blog/", "/~me/my.blog/", "/über/"} {
		n := startNginx(t, nginxOptions{files: files, path: at})
		address := (&url.URL{Path: at}).EscapedPath()
		for _, prefix := range []string{address, "/"} { // as it comes, and as a proxy hands it on that strips the path
			for _, c := range []struct {
				path     string
				status   int
				location string
				body     string
			}{
				{path: "", status: 200, body: files["index.html"]},
				{path: "articles/one/?x=y", status: 200, body: files["articles/one/index.html"]},
				{path: "a%20b%25%3F%C3%BC/", status: 200, body: "odd"},
				{path: style[1:], status: 200, body: files[style[1:]]},
				{path: ".well-known/matrix/server", status: 200, body: "{}"},
				{path: "articles/one?x=y", status: 301, location: address + "articles/one/?x=y"},
				{path: "missing/", status: 404, body: files["404.html"]},
				{path: "it/mancante", status: 404, body: files["it/404.html"]},
				{path: "css/", status: 404, body: files["404.html"]},
			} {
				resp, body := n.get(t, prefix+c.path)
				if resp.StatusCode != c.status || c.location == "" && body != c.body {
					t.Errorf("%s: %s, %d bytes, want %d, %d bytes", prefix+c.path, resp.Status, len(body), c.status, len(c.body))
				}
				if got := resp.Header.Get("Location"); got != c.location {
					t.Errorf("%s: redirect to %q, want %q", prefix+c.path, got, c.location)
				}
				if got := resp.Header.Values("X-Content-Type-Options"); len(got) != 1 {
					t.Errorf("%s: without the headers", prefix+c.path)
				}
			}
		}
		resp, _ := n.get(t, strings.TrimSuffix(address, "/")+"?x=y")
		if got := resp.Header.Get("Location"); resp.StatusCode != 301 || got != address+"?x=y" {
			t.Errorf("without the last slash: %s to %q", resp.Status, got)
		}
		if resp, _ := n.get(t, style); resp.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("Cache-Control %q", resp.Header.Get("Cache-Control"))
		}
		if resp, body := n.get(t, "/healthz"); resp.StatusCode != 200 || body != "ok\n" {
			t.Errorf("healthz: %s", resp.Status)
		}
		if resp, _ := n.get(t, address+".well-known/matrix/server"); !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("a file without an extension: %s", resp.Header.Get("Content-Type"))
		}
		if strings.Contains(n.log(t), "[warn]") {
			t.Errorf("nginx complains: %s", n.log(t))
		}
	}
}

func TestAPathThatNoConfigurationHoldsIsRefused(t *testing.T) {
	for _, at := range []string{"/a b/", `/"/`, "/$x/", "/{/", "/;/", "/../", "/a//b/", "/a", "a/", "/a\nb/", `/\/`, "/./"} {
		o := newOptions(t, filetest.New(t, smallSite()))
		o.Path = at
		if _, _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the base URL's path") {
			t.Errorf("%q: got %v", at, err)
		}
	}
}

// The image's own paths, everything read-only but /dev/shm, and standard output owned by the user as a container runtime
// makes it.
func TestNginxRunsFromTheImagesOwnPathsWithNothingToWriteToButShm(t *testing.T) {
	needs.Root(t, "to mount")
	program := lookUpNginx(t)
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		needs.Missing(t, "this machine allows no mounts: %s", out)
	}
	for _, user := range []int{0, 65532} {
		dir := t.TempDir()
		o := newOptions(t, filetest.New(t, smallSite()))
		o.Port = porttest.Free(t, "127.0.0.1")
		image, report := mustBuild(t, o)
		unpack(t, image, report, dir)
		command := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-euc", `
			mount -t tmpfs -o mode=1777 tmpfs /dev/shm
			mount -t tmpfs tmpfs /srv
			mkdir /srv/www
			mount --bind "$1/srv/www" /srv/www
			mount --bind "$1/etc/nginx" /etc/nginx
			for path in /srv /srv/www /etc/nginx; do mount -o remount,ro,bind "$path"; done
			for path in /var /run /tmp; do mount -t tmpfs -o ro tmpfs "$path"; done
			exec setpriv --reuid "$2" --regid "$2" --clear-groups "$3" -e stderr -g "daemon off;"
		`, "sh", dir, strconv.Itoa(user), program)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if err := writer.Chown(user, user); err != nil {
			t.Fatal(err)
		}
		n := &nginx{port: o.Port, url: fmt.Sprintf("http://127.0.0.1:%d", o.Port)}
		command.Stdout = writer
		n.run(t, command)
		writer.Close()
		if resp, body := n.get(t, "/articles/one/"); resp.StatusCode != 200 || body != smallSite()["articles/one/index.html"] {
			t.Errorf("as user %d: %s", user, resp.Status)
		}
		line, err := bufio.NewReader(reader).ReadString('\n')
		if err != nil || !strings.Contains(line, `"GET /articles/one/ HTTP/1.1" 200`) {
			t.Errorf("access log on standard output: %q (%v)", line, err)
		}
		if strings.Contains(n.log(t), "[") {
			t.Errorf("as user %d nginx complains: %s", user, n.log(t))
		}
	}
}
