package siteimage

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"text/template"
)

//go:embed nginx.conf.tmpl
var nginxTemplate string

var nginxConf = template.Must(template.New("nginx.conf").Parse(nginxTemplate))

// What a site may load when Options say nothing: its own files, and pictures that its styles hold as data.
const defaultContentSecurityPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; " +
	"form-action 'self'; frame-ancestors 'none'"

// nginxSettings are what the template needs. A test gives other paths than an image.
type nginxSettings struct {
	Port      int
	Root      string // the site
	Scratch   string // where nginx may write
	ConfDir   string
	IPv6Probe string // a folder that is there exactly when the kernel has IPv6
	AccessLog string

	ContentSecurityPolicy string
	NotFoundPage          string   // address of the page for what does not exist, or nginx's name of a location
	NotFoundInLanguage    []string // folders that have their own such page
}

func imageSettings(o Options, site *site) nginxSettings {
	csp := o.ContentSecurityPolicy
	if csp == "" {
		csp = defaultContentSecurityPolicy
	}
	settings := nginxSettings{
		Port: o.Port, Root: "/" + siteDir, ConfDir: "/etc/nginx",
		// A memory file system that every container has, writable for every user and with a read-only root too.
		Scratch: "/dev/shm", IPv6Probe: "/proc/sys/net/ipv6", AccessLog: "/dev/stdout",
		ContentSecurityPolicy: csp, NotFoundPage: "@not_found",
	}
	for _, f := range site.files {
		dir, name := path.Split(f.path)
		switch {
		case name != "404.html":
		case dir == "":
			settings.NotFoundPage = "/404.html"
		case languageFolder.MatchString(dir):
			settings.NotFoundInLanguage = append(settings.NotFoundInLanguage, strings.TrimSuffix(dir, "/"))
		}
	}
	return settings
}

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
	settings := imageSettings(o, site)
	files, err := settings.files()
	return group{"server", strings.TrimPrefix(settings.ConfDir, "/"), files}, err
}

// isHeaderValue keeps a value from leaving the quoted string of the configuration, and from naming nginx's variables.
func isHeaderValue(s string) bool { return !strings.ContainsAny(s, "\"\\$\r\n\x00") }
