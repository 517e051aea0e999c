package siteimage

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"tazlab.net/castle/ci/publish/site/siteheaders"
)

//go:embed nginx.conf.tmpl
var nginxTemplate string

var nginxConf = template.Must(template.New("nginx.conf").Parse(nginxTemplate))

// nginxSettings are what the template needs. A test gives other paths than an image.
type nginxSettings struct {
	Port      int
	Root      string // the site
	Scratch   string // where nginx may write
	ConfDir   string
	IPv6Probe string // a folder that is there exactly when the kernel has IPv6
	AccessLog string

	Types              []mimeType
	Headers            []header
	Path               string   // below which the site is, with slashes around it
	NotFoundPage       string   // address of the page for what does not exist, or nginx's name of a location
	NotFoundInLanguage []string // folders that have their own such page
}

// header is a field of every answer.
type header struct{ Name, Value string }

// securityHeaders are those that the image sends, in nginx.conf's order; those without a field of Headers go with every site.
func securityHeaders(h siteheaders.Headers) []header {
	return slices.DeleteFunc([]header{
		{"Content-Security-Policy", h.ContentSecurityPolicy},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", h.FrameOptions},
		{"Referrer-Policy", "strict-origin-when-cross-origin"},
		{"Permissions-Policy", h.PermissionsPolicy},
		{"Cross-Origin-Opener-Policy", h.OpenerPolicy},
	}, func(h header) bool { return h.Value == "" })
}

// Quoted is the value as a string of nginx's configuration. A dollar sign cannot be quoted there; a variable holds one.
func (h header) Quoted() string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `${dollar}`).Replace(h.Value) + `"`
}

// NeedsDollar says whether a header has that variable.
func (n nginxSettings) NeedsDollar() bool {
	return slices.ContainsFunc(n.Headers, func(h header) bool { return strings.Contains(h.Value, "$") })
}

func imageSettings(o Options, site *site) (nginxSettings, error) {
	types, err := mimeTypes(o.Base)
	if err != nil {
		return nginxSettings{}, fmt.Errorf("base image: %s: %w", mimeTypesFile, err)
	}
	settings := nginxSettings{
		Port: o.Port, Path: o.Path, Root: "/" + siteDir, ConfDir: "/etc/nginx",
		// A memory file system that every container has, writable for every user and with a read-only root too.
		Scratch: "/dev/shm", IPv6Probe: "/proc/sys/net/ipv6", AccessLog: "/dev/stdout",
		Types: types, Headers: securityHeaders(o.Headers), NotFoundPage: notFound,
	}
	for _, f := range site.files {
		dir, name := path.Split(f.path)
		switch {
		case name != "404.html":
		case dir == "":
			settings.NotFoundPage = o.Path + "404.html"
		case languageFolder.MatchString(dir):
			settings.NotFoundInLanguage = append(settings.NotFoundInLanguage, strings.TrimSuffix(dir, "/"))
		}
	}
	if settings.NotFoundPage == notFound && slices.Contains(settings.NotFoundInLanguage, o.Language) {
		settings.NotFoundPage = o.Path + o.Language + "/404.html"
	}
	return settings, nil
}

// notFound is nginx's name of the location that answers where the site has no page for it.
const notFound = "@not_found"

// "it/", and no name that would need quoting in the configuration.
var languageFolder = regexp.MustCompile(`^[A-Za-z0-9_-]+/$`)

// IPv6Include is a pattern of the file that makes nginx listen on IPv6 too, reached through IPv6Probe and back: where
// the probe is missing the pattern matches nothing, which include allows. Without this nginx, which has no conditions,
// would not start where the kernel has no IPv6. The last letter is in brackets because include forgives a missing file
// only of a pattern.
func (n nginxSettings) IPv6Include() string {
	back := strings.Repeat("/..", strings.Count(path.Clean(n.IPv6Probe), "/"))
	return n.IPv6Probe + back + n.ConfDir + "/listen-ipv6.con[f]"
}

// files returns the content of ConfDir.
func (n nginxSettings) files() ([]file, error) {
	var conf bytes.Buffer
	if err := nginxConf.Execute(&conf, n); err != nil {
		return nil, err
	}
	return []file{
		memoryFile("listen-ipv6.conf", fmt.Appendf(nil, "listen [::]:%d ipv6only=on;\n", n.Port)),
		memoryFile("nginx.conf", conf.Bytes()),
	}, nil
}

func serverLayer(o Options, site *site) (group, error) {
	settings, err := imageSettings(o, site)
	if err != nil {
		return group{}, err
	}
	files, err := settings.files()
	return group{"server", strings.TrimPrefix(settings.ConfDir, "/"), files}, err
}

// Pattern is Path in a regular expression.
func (n nginxSettings) Pattern() string { return regexp.QuoteMeta(n.Path) }

// Folder is Path without its last slash; empty for a site at its host's root.
func (n nginxSettings) Folder() string { return strings.TrimSuffix(n.Path, "/") }

// Address is Path as a redirect names it.
func (n nginxSettings) Address() string { return (&url.URL{Path: n.Path}).EscapedPath() }

// isHeaderValue keeps a value on its line.
func isHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
