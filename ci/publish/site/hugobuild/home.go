package hugobuild

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// hasHome refuses a built site without a page at its root where a setting of Hugo's is the reason, and names it. The
// image has one root for one host.
func hasHome(built, site string) error {
	if _, err := os.Stat(filepath.Join(built, "index.html")); err == nil {
		return nil
	}
	config, err := hugoconfig.LoadFS(os.DirFS(site))
	if err != nil {
		return err
	}
	if hosts := hostsOf(config); len(hosts) > 0 && len(config.Languages()) > 1 {
		return fmt.Errorf("%s in Hugo's configuration: Hugo then makes one site for each host, and castle publishes one site in an image: "+
			"remove it, so that the languages are folders of one host; or give each host a site with a configuration of its own, "+
			"whose disableLanguages has the others", strings.Join(hosts, " and "))
	}
	main := config.MainLanguage()
	for _, setting := range []string{"disableDefaultLanguageRedirect", "disableDefaultSiteRedirect"} {
		if config.Bool(setting, false) {
			return fmt.Errorf("%s in Hugo's configuration leaves the site without a page at /, which its image would answer with 404: "+
				"remove the setting, and Hugo redirects / to /%s/; or add a page of your own as static/index.html", setting, main)
		}
	}
	if slices.Contains(config.Texts("disableKinds"), "home") {
		return fmt.Errorf("disableKinds in Hugo's configuration switches the kind home off, so the site has no page at /: " +
			"remove home from it, or add a page of your own as static/index.html")
	}
	if outputs := config.Part("outputs").Texts("home"); len(outputs) > 0 && !containsFold(outputs, "html") {
		return fmt.Errorf("outputs.home in Hugo's configuration is %s, so the site has no page at /: add html to it, "+
			"or add a page of your own as static/index.html", strings.Join(outputs, ", "))
	}
	return nil // siteimage says what is missing
}

// hostsOf are the settings that give a language a host of its own. Source: fromLoadConfigResult in
// config/allconfig/allconfig.go of Hugo v0.165.0.
func hostsOf(config hugoconfig.Config) []string {
	var settings []string
	for _, code := range config.Languages() {
		if config.Part("languages").Part(code).Text("baseURL", "") != "" {
			settings = append(settings, "languages."+code+".baseURL")
		}
	}
	return settings
}

func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, text) })
}
