package siteheaders

import "strings"

// service is a script or stylesheet of another host that loads more than the page says.
type service struct {
	name  string
	at    []string          // host, or host and path, that it is loaded from; "*." stands for any host below
	mark  string            // what a script has that puts the address together; of a library, what its path has
	needs map[string]string // sources by directive, separated by blanks
}

// services are the well-known ones. Each row's source is the page with which the service tells what a policy must allow;
// where it has none, what its published script does.
var services = []service{
	// developers.google.com/tag-platform/security/guides/csp
	{name: "Google Tag Manager", at: []string{"www.googletagmanager.com/gtm.js"}, mark: "googletagmanager.com/gtm.js", needs: map[string]string{
		scriptSrc: "https://*.googletagmanager.com https://*.google-analytics.com", imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost, styleSrc: unsafeInline,
	}},
	{name: "Google Analytics", at: []string{"www.googletagmanager.com", "www.google-analytics.com"}, mark: "google-analytics.com/analytics.js", needs: map[string]string{
		scriptSrc:  "https://*.googletagmanager.com https://*.google-analytics.com",
		imgSrc:     "https://*.google-analytics.com https://*.googletagmanager.com https://*.g.doubleclick.net https://*.google.com",
		connectSrc: "https://*.google-analytics.com https://*.analytics.google.com https://*.googletagmanager.com https://*.g.doubleclick.net https://*.google.com",
		frameSrc:   "https://td.doubleclick.net https://*.googletagmanager.com",
	}},
	// support.google.com/adsense/answer/16283098: only a policy of nonces is supported, so hosts are left open.
	{name: "Google AdSense", at: []string{"pagead2.googlesyndication.com"}, needs: map[string]string{
		scriptSrc: anyHost, imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost, fontSrc: anyHost, styleSrc: unsafeInline,
	}},
	// developers.google.com/fonts/docs/getting_started
	{name: "Google Fonts", at: []string{"fonts.googleapis.com"}, needs: map[string]string{
		styleSrc: "https://fonts.googleapis.com", fontSrc: "https://fonts.gstatic.com",
	}},
	// fonts.bunny.net/faq
	{name: "Bunny Fonts", at: []string{"fonts.bunny.net"}, needs: map[string]string{
		styleSrc: "https://fonts.bunny.net", fontSrc: "https://fonts.bunny.net",
	}},
	// helpx.adobe.com/fonts/using/content-security-policy.html
	{name: "Adobe Fonts", at: []string{"use.typekit.net"}, needs: map[string]string{
		scriptSrc: "https://use.typekit.net", styleSrc: "https://use.typekit.net https://p.typekit.net " + unsafeInline,
		fontSrc: "https://use.typekit.net", imgSrc: "https://p.typekit.net", connectSrc: "https://performance.typekit.net",
	}},
	// docs.fontawesome.com/web/dig-deeper/security
	{name: "Font Awesome", at: []string{"kit.fontawesome.com", "use.fontawesome.com"}, needs: map[string]string{
		scriptSrc: "https://kit.fontawesome.com https://use.fontawesome.com https://ka-f.fontawesome.com https://ka-p.fontawesome.com",
		styleSrc:  "https://use.fontawesome.com https://ka-f.fontawesome.com https://ka-p.fontawesome.com " + unsafeInline,
		fontSrc:   "https://use.fontawesome.com https://ka-f.fontawesome.com https://ka-p.fontawesome.com", connectSrc: "https://*.fontawesome.com",
	}},
	// github.com/giscus/giscus, client.ts
	{name: "giscus", at: []string{"giscus.app"}, needs: map[string]string{
		scriptSrc: "https://giscus.app", styleSrc: "https://giscus.app", frameSrc: "https://giscus.app", connectSrc: "https://giscus.app",
	}},
	// github.com/utterance/utterances, src/client.ts
	{name: "utterances", at: []string{"utteranc.es"}, needs: map[string]string{
		scriptSrc: "https://utteranc.es", styleSrc: unsafeInline, frameSrc: "https://utteranc.es",
	}},
	// help.disqus.com, "Using Disqus with a Content Security Policy"
	{name: "Disqus", at: []string{"*.disqus.com"}, mark: ".disqus.com/", needs: map[string]string{
		scriptSrc: "https://*.disqus.com https://*.disquscdn.com", styleSrc: "https://*.disquscdn.com " + unsafeInline,
		imgSrc: "https://*.disqus.com https://*.disquscdn.com", fontSrc: "https://*.disquscdn.com",
		connectSrc: "https://*.disqus.com https://*.disquscdn.com", frameSrc: "https://disqus.com https://*.disqus.com",
	}},
	// plausible.io/docs/troubleshoot-integration
	{name: "Plausible", at: []string{"plausible.io"}, needs: map[string]string{scriptSrc: "https://plausible.io", connectSrc: "https://plausible.io"}},
	// umami.is/docs/tracker-configuration
	{name: "Umami", at: []string{"cloud.umami.is", "analytics.umami.is"}, needs: map[string]string{
		scriptSrc: "https://cloud.umami.is https://analytics.umami.is", connectSrc: "https://*.umami.is https://*.umami.dev",
	}},
	// usefathom.com/docs/script/script-advanced
	{name: "Fathom", at: []string{"cdn.usefathom.com"}, needs: map[string]string{
		scriptSrc: "https://cdn.usefathom.com", imgSrc: "https://cdn.usefathom.com", connectSrc: "https://cdn.usefathom.com",
	}},
	// goatcounter.com/help/csp
	{name: "GoatCounter", at: []string{"gc.zgo.at"}, needs: map[string]string{
		scriptSrc: "https://gc.zgo.at", connectSrc: "https://*.goatcounter.com", imgSrc: "https://*.goatcounter.com",
	}},
	// matomo.org/faq/troubleshooting, "What is a Content Security Policy"
	{name: "Matomo", at: []string{"cdn.matomo.cloud"}, needs: map[string]string{
		scriptSrc: "https://cdn.matomo.cloud", imgSrc: "https://*.matomo.cloud", connectSrc: "https://*.matomo.cloud",
	}},
	// developers.cloudflare.com/web-analytics/faq
	{name: "Cloudflare Web Analytics", at: []string{"static.cloudflareinsights.com"}, needs: map[string]string{
		scriptSrc: "https://static.cloudflareinsights.com", connectSrc: "https://cloudflareinsights.com",
	}},
	// developers.cloudflare.com/turnstile/reference/content-security-policy
	{name: "Cloudflare Turnstile", at: []string{"challenges.cloudflare.com"}, needs: map[string]string{
		scriptSrc: "https://challenges.cloudflare.com", frameSrc: "https://challenges.cloudflare.com",
	}},
	// docs.simpleanalytics.com/csp
	{name: "Simple Analytics", at: []string{"scripts.simpleanalyticscdn.com"}, needs: map[string]string{
		scriptSrc: "https://scripts.simpleanalyticscdn.com", imgSrc: "https://*.simpleanalyticscdn.com", connectSrc: "https://*.simpleanalyticscdn.com",
	}},
	// learn.microsoft.com/clarity/setup-and-installation/clarity-csp
	{name: "Microsoft Clarity", at: []string{"*.clarity.ms"}, needs: map[string]string{
		scriptSrc: "https://*.clarity.ms", imgSrc: "https://*.clarity.ms https://c.bing.com", connectSrc: "https://*.clarity.ms https://c.bing.com",
	}},
	// developers.google.com/youtube/iframe_api_reference
	{name: "YouTube's player", at: []string{"www.youtube.com/iframe_api", "www.youtube.com/player_api"}, mark: "youtube.com/iframe_api", needs: map[string]string{
		scriptSrc: "https://www.youtube.com", imgSrc: "https://i.ytimg.com", frameSrc: "https://www.youtube.com https://www.youtube-nocookie.com",
	}},
	// developer.vimeo.com/player/sdk
	{name: "Vimeo's player", at: []string{"player.vimeo.com"}, needs: map[string]string{
		scriptSrc: "https://player.vimeo.com", frameSrc: "https://player.vimeo.com", imgSrc: "https://i.vimeocdn.com", connectSrc: "https://vimeo.com",
	}},
	// developer.x.com/en/docs/x-for-websites/webpage-properties
	{name: "X", at: []string{"platform.twitter.com", "platform.x.com"}, needs: map[string]string{
		scriptSrc: "https://platform.twitter.com https://platform.x.com https://cdn.syndication.twimg.com", styleSrc: "https://platform.twitter.com " + unsafeInline,
		imgSrc: "https://*.twimg.com https://platform.twitter.com https://syndication.twitter.com", connectSrc: "https://*.twitter.com https://*.x.com",
		frameSrc: "https://platform.twitter.com https://platform.x.com https://syndication.twitter.com",
	}},
	// developers.facebook.com/docs/instagram/embed-button
	{name: "Instagram", at: []string{"www.instagram.com/embed.js", "platform.instagram.com"}, needs: map[string]string{
		scriptSrc: "https://www.instagram.com https://platform.instagram.com", frameSrc: "https://www.instagram.com", styleSrc: unsafeInline,
	}},
	// developers.tiktok.com/doc/embed-videos
	{name: "TikTok", at: []string{"www.tiktok.com/embed.js"}, needs: map[string]string{
		scriptSrc: "https://www.tiktok.com https://*.ttwstatic.com", styleSrc: "https://*.ttwstatic.com " + unsafeInline,
		connectSrc: "https://www.tiktok.com", frameSrc: "https://www.tiktok.com",
	}},
	// docs.github.com/get-started/writing-on-github, "Creating gists": the script writes a stylesheet and markup.
	{name: "GitHub Gist", at: []string{"gist.github.com"}, needs: map[string]string{
		scriptSrc: "https://gist.github.com", styleSrc: "https://github.githubassets.com " + unsafeInline,
		imgSrc: "https://github.githubassets.com https://*.githubusercontent.com",
	}},
	// developers.google.com/recaptcha/docs/faq
	{name: "reCAPTCHA", at: []string{"www.google.com/recaptcha/", "www.recaptcha.net/recaptcha/"}, needs: map[string]string{
		scriptSrc:  "https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/ https://www.recaptcha.net/recaptcha/",
		connectSrc: "https://www.google.com/recaptcha/ https://www.recaptcha.net/recaptcha/", styleSrc: unsafeInline,
		frameSrc: "https://www.google.com/recaptcha/ https://recaptcha.google.com/recaptcha/ https://www.recaptcha.net/recaptcha/",
	}},
	// docs.hcaptcha.com/#content-security-policy-settings
	{name: "hCaptcha", at: []string{"hcaptcha.com", "*.hcaptcha.com"}, needs: map[string]string{
		scriptSrc: "https://hcaptcha.com https://*.hcaptcha.com", styleSrc: "https://hcaptcha.com https://*.hcaptcha.com " + unsafeInline,
		connectSrc: "https://hcaptcha.com https://*.hcaptcha.com", frameSrc: "https://hcaptcha.com https://*.hcaptcha.com",
	}},
	// docs.stripe.com/security/guide#content-security-policy
	{name: "Stripe", at: []string{"js.stripe.com"}, needs: map[string]string{
		scriptSrc: "https://js.stripe.com https://*.js.stripe.com", connectSrc: "https://api.stripe.com", imgSrc: "https://*.stripe.com", styleSrc: unsafeInline,
		frameSrc: "https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com",
	}},
	// firebase.google.com/docs/web/alt-setup
	{name: "Firebase", at: []string{"www.gstatic.com/firebasejs/"}, mark: "firebasejs/", needs: map[string]string{
		scriptSrc: "https://www.gstatic.com/firebasejs/ https://apis.google.com", frameSrc: "https://*.firebaseapp.com",
		connectSrc: "https://*.googleapis.com https://*.firebaseio.com wss://*.firebaseio.com https://*.cloudfunctions.net",
	}},
	// algolia.com/doc/guides/security/security-best-practices
	{name: "Algolia", at: []string{"*.algolia.com", "*.algolia.net"}, mark: "docsearch(", needs: map[string]string{
		scriptSrc: "https://*.algolia.com", connectSrc: "https://*.algolia.com https://*.algolia.net https://*.algolianet.com https://*.algolia.io",
	}},
	// developers.google.com/custom-search/docs/overview: its templates are evaluated.
	{name: "Google's search box", at: []string{"cse.google.com", "www.google.com/cse/"}, needs: map[string]string{
		scriptSrc: "https://cse.google.com https://www.google.com https://*.googleapis.com https://*.googleadservices.com " + unsafeEval,
		styleSrc:  "https://www.google.com " + unsafeInline, imgSrc: anyHost, connectSrc: "https://*.google.com https://*.googleapis.com",
		frameSrc: "https://cse.google.com https://syndicatedsearch.goog https://*.google.com",
	}},
}

// libraries are scripts that many hosts serve, told by a mark in the path.
var libraries = []service{
	// alpinejs.dev/advanced/csp
	{name: "Alpine.js", mark: "alpinejs", needs: map[string]string{scriptSrc: unsafeEval}},
	// github.com/vuejs/petite-vue
	{name: "petite-vue", mark: "petite-vue", needs: map[string]string{scriptSrc: unsafeEval}},
	// vuejs.org/guide/scaling-up/tooling, "Note on In-Browser Template Compilation"
	{name: "Vue", mark: "/vue@", needs: map[string]string{scriptSrc: unsafeEval}},
	// handlebarsjs.com/installation/precompilation.html
	{name: "Handlebars", mark: "handlebars", needs: map[string]string{scriptSrc: unsafeEval}},
	// docs.mathjax.org/en/latest/output: fonts and extensions are packages of their own
	{name: "MathJax", mark: "mathjax", needs: map[string]string{
		scriptSrc: "https://cdn.jsdelivr.net/npm/@mathjax/", fontSrc: "https://cdn.jsdelivr.net/npm/@mathjax/",
		connectSrc: "https://cdn.jsdelivr.net/npm/", workerSrc: blobScheme,
	}},
	// algolia.com/doc/guides/security/security-best-practices
	{name: "Algolia", mark: "docsearch", needs: map[string]string{connectSrc: "https://*.algolia.net https://*.algolianet.com https://*.algolia.io"}},
	{name: "Algolia", mark: "algoliasearch", needs: map[string]string{connectSrc: "https://*.algolia.net https://*.algolianet.com https://*.algolia.io"}},
}

// packageHosts serve files of anybody, and in front of the path how many parts name a package. A policy names the package:
// the host as a whole would allow all scripts there are.
var packageHosts = map[string]func(parts []string) int{
	"cdn.jsdelivr.net":           jsDelivr,
	"fastly.jsdelivr.net":        jsDelivr,
	"gcore.jsdelivr.net":         jsDelivr,
	"testingcf.jsdelivr.net":     jsDelivr,
	"unpkg.com":                  scoped,
	"esm.sh":                     nil, // its packages load each other
	"cdn.skypack.dev":            nil,
	"cdnjs.cloudflare.com":       func([]string) int { return 4 }, // ajax/libs/name/version
	"ajax.googleapis.com":        func([]string) int { return 4 },
	"cdn.staticfile.org":         func([]string) int { return 2 },
	"cdn.bootcdn.net":            func([]string) int { return 4 },
	"code.jquery.com":            func([]string) int { return 0 },
	"maxcdn.bootstrapcdn.com":    func([]string) int { return 2 },
	"stackpath.bootstrapcdn.com": func([]string) int { return 2 },
}

func jsDelivr(parts []string) int {
	switch parts[0] {
	case "gh":
		return 3
	case "npm":
		return 1 + scoped(parts[1:])
	}
	return len(parts) // combined files: this one only
}

func scoped(parts []string) int {
	if len(parts) > 0 && strings.HasPrefix(parts[0], "@") {
		return 2
	}
	return 1
}

// packageOf is the source for a file of a host in packageHosts.
func packageOf(host, path string) (source string, found bool) {
	count, found := packageHosts[host]
	if !found || count == nil {
		return "https://" + host, found
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch n := count(parts); {
	case n == 0:
		return "https://" + host, true
	case n < len(parts):
		return "https://" + host + "/" + escapePath(strings.Join(parts[:n], "/")) + "/", true
	}
	return "https://" + host + escapePath(path), true
}

// escapePath writes what would end a source or a directive in another way.
func escapePath(path string) string {
	return strings.NewReplacer(";", "%3B", ",", "%2C", " ", "%20", "'", "%27", `"`, "%22", "$", "%24", `\`, "%5C").Replace(path)
}

// serviceOf finds the service that an address belongs to.
func serviceOf(to address) *service {
	for i, s := range services {
		for _, at := range s.at {
			host, path, _ := strings.Cut(at, "/")
			below, wildcard := strings.CutPrefix(host, "*")
			if (host == to.host || wildcard && strings.HasSuffix(to.host, below)) && strings.HasPrefix("/"+strings.TrimPrefix(to.path, "/"), "/"+path) {
				return &services[i]
			}
		}
	}
	return nil
}

// uses notes all that a service needs.
func (d *document) uses(s *service) {
	for directive, sources := range s.needs {
		for source := range strings.FieldsSeq(sources) {
			d.because(directive, source, s.name)
		}
	}
}
