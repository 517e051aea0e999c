package hugobuild

import (
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// baseURL is the site's own base URL, and the setting that it is from, for messages.
type baseURL struct{ text, from string }

// OwnBaseURL is the site's own base URL; empty where its configuration has none that a build accepts.
func OwnBaseURL(site string) (string, error) {
	own, err := ownBaseURL(site)
	if err != nil || own.check() != nil {
		return "", err
	}
	return own.text, nil
}

// ownBaseURL reads it from the configuration. The base URL of the only language goes before the site's.
func ownBaseURL(site string) (baseURL, error) {
	own := baseURL{from: "Hugo's configuration has no baseURL"}
	folder := os.DirFS(site)
	files, err := hugoconfig.FilesFS(folder)
	if err != nil {
		return own, err
	}
	config, err := hugoconfig.LoadFiles(folder, files...)
	if err != nil {
		return own, err
	}
	settings := [][]string{{"baseURL"}}
	if codes := config.Languages(); len(codes) == 1 {
		settings = append(settings, []string{"languages", codes[0], "baseURL"})
	}
	for _, setting := range settings {
		for _, file := range files {
			part, err := hugoconfig.LoadFiles(folder, file)
			if err != nil {
				return own, err
			}
			for _, key := range setting[:len(setting)-1] {
				part = part.Part(key)
			}
			if text := part.Text("baseURL", ""); text != "" {
				own = baseURL{text, strings.Join(setting, ".") + " of " + file}
			}
		}
	}
	return own, nil
}

const baseURLFix = "write the site's full address there or as baseURL for the site in castle.yaml, or give --base-url, such as https://blog.example.net/"

// check refuses what makes broken links of all that are absolute. A path alone is fine for links, and for a site that is served
// at any host.
func (b baseURL) check() error {
	parsed, err := url.Parse(b.text)
	switch {
	case err == nil && strings.HasPrefix(b.text, "/"), b.text == "":
		return nil
	case err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Hostname() != "":
		return nil
	case err == nil && parsed.Scheme == "":
		return fmt.Errorf("%s is %q, which has no scheme, so that links lead to a folder of that name: %s; / alone is right for a site at any host",
			b.from, b.text, baseURLFix)
	default:
		return fmt.Errorf("%s is %q, which is not an address of a website: %s", b.from, b.text, baseURLFix)
	}
}

// placeholder are hosts that nobody's site has. Source: RFC 2606, which reserves them.
var placeholder = regexp.MustCompile(`(?i)^(.+\.)?(example\.(com|net|org)|example|test|invalid|localhost)$`)

// warning says what in a built site does not work with this base URL.
func (b baseURL) warning(built string) (string, error) {
	parsed, err := url.Parse(b.text)
	if err != nil {
		return "", err
	}
	host := parsed.Hostname()
	if ip := net.ParseIP(host); placeholder.MatchString(host) || ip.IsLoopback() || ip.IsUnspecified() {
		return fmt.Sprintf("%s is %q, so that feeds, the sitemap and canonical links lead there: %s", b.from, b.text, baseURLFix), nil
	}
	if parsed.Scheme != "" {
		return "", nil
	}
	list, err := firstFile(built, func(name string, _ fs.DirEntry) (bool, error) {
		return strings.EqualFold(filepath.Ext(name), ".xml"), nil // a feed or a sitemap
	})
	if err != nil || list == "" {
		return "", err
	}
	said := fmt.Sprintf("%s is %q", b.from, b.text)
	if b.text == "" {
		said = b.from
	}
	return fmt.Sprintf("%s: the addresses in %s have no host, and feed readers and search engines cannot follow them: %s", said, list, baseURLFix), nil
}
