package siteheaders

import "strings"

// service is a script or stylesheet of another host that loads more than the page says.
type service struct {
	name  string
	at    []string          // host, or host and path, that it is loaded from; "*." stands for any host below
	mark  string            // what a script has that puts the address together; of a library, what its path has
	needs map[string]string // sources by directive, separated by blanks
}

// services are the well-known ones. The comment at each row names what the row was read from: the service's page about
// policies, its published script, or a policy that another project runs with it. Where it begins with "In part", that
// told only what is said there: the rest of the row is unchecked, and so requests, pictures and frames are open in it,
// as for a host that is not known.
var services = []service{
	// developers.google.com/tag-platform/security/guides/csp: what a container loads is up to its owner, so hosts are
	// left open. Tags that are text, and variables that are code, would need 'unsafe-inline' and 'unsafe-eval' and do
	// not get them.
	{name: "Google Tag Manager", at: []string{"www.googletagmanager.com/gtm.js"}, mark: "googletagmanager.com/gtm.js", needs: map[string]string{
		scriptSrc: anyHost, imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost, styleSrc: unsafeInline,
	}},
	// developers.google.com/tag-platform/security/guides/csp, Google Analytics 4 with Google Signals. Left out are
	// Google's hosts by country, too many for a header, and those of Google Ads.
	{name: "Google Analytics", at: []string{"www.googletagmanager.com", "www.google-analytics.com"}, mark: "google-analytics.com/analytics.js", needs: map[string]string{
		scriptSrc: "https://*.googletagmanager.com https://*.google-analytics.com",
		imgSrc:    "https://*.google-analytics.com https://*.googletagmanager.com https://*.g.doubleclick.net https://*.google.com",
		connectSrc: "https://*.google-analytics.com https://*.analytics.google.com https://*.googletagmanager.com https://*.g.doubleclick.net " +
			"https://*.google.com https://pagead2.googlesyndication.com",
		frameSrc: "https://www.googletagmanager.com",
	}},
	// support.google.com/adsense/answer/16283098: only a policy of nonces is supported, with 'unsafe-eval', because the
	// hosts change; so they are left open.
	{name: "Google AdSense", at: []string{"pagead2.googlesyndication.com"}, needs: map[string]string{
		scriptSrc: anyHost + " " + unsafeEval, imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost, fontSrc: anyHost, styleSrc: unsafeInline,
	}},
	// github.com/spatie/laravel-csp, src/Presets/GoogleFonts.php
	{name: "Google Fonts", at: []string{"fonts.googleapis.com"}, needs: map[string]string{
		styleSrc: "https://fonts.googleapis.com", fontSrc: "https://fonts.gstatic.com",
	}},
	// github.com/spatie/laravel-csp, src/Presets/BunnyFonts.php
	{name: "Bunny Fonts", at: []string{"fonts.bunny.net"}, needs: map[string]string{
		styleSrc: "https://fonts.bunny.net", fontSrc: "https://fonts.bunny.net",
	}},
	// helpx.adobe.com/fonts/web/web-design-and-development/content-security-policy.html; of
	// github.com/spatie/laravel-csp, src/Presets/AdobeFonts.php, the stylesheet of p.typekit.net and the fonts of
	// use.typekit.net
	{name: "Adobe Fonts", at: []string{"use.typekit.net"}, needs: map[string]string{
		scriptSrc: "https://use.typekit.net", styleSrc: "https://use.typekit.net https://p.typekit.net " + unsafeInline,
		fontSrc: "https://use.typekit.net " + dataScheme, imgSrc: "https://p.typekit.net", connectSrc: "https://performance.typekit.net",
	}},
	// docs.fontawesome.com/web/dig-deeper/security for the styles that the script inserts. The script of a kit names
	// ka-f.fontawesome.com and kit-pro.fontawesome.com; which others there are is not told, so all are allowed.
	{name: "Font Awesome", at: []string{"kit.fontawesome.com", "use.fontawesome.com"}, needs: map[string]string{
		scriptSrc: "https://*.fontawesome.com", styleSrc: "https://*.fontawesome.com " + unsafeInline,
		fontSrc: "https://*.fontawesome.com", connectSrc: "https://*.fontawesome.com",
	}},
	// github.com/giscus/giscus, client.ts
	{name: "giscus", at: []string{"giscus.app"}, needs: map[string]string{
		scriptSrc: "https://giscus.app", styleSrc: "https://giscus.app", frameSrc: "https://giscus.app",
	}},
	// github.com/utterance/utterances, src/client.ts
	{name: "utterances", at: []string{"utteranc.es"}, needs: map[string]string{
		scriptSrc: "https://utteranc.es", styleSrc: unsafeInline, frameSrc: "https://utteranc.es",
	}},
	// In part: github.com/hackmdio/codimd/pull/1092, that disqus.com itself serves a script
	{name: "Disqus", at: []string{"*.disqus.com"}, mark: ".disqus.com/", needs: map[string]string{
		scriptSrc: "https://disqus.com https://*.disqus.com https://*.disquscdn.com", styleSrc: "https://*.disquscdn.com " + unsafeInline,
		fontSrc: "https://*.disquscdn.com", imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost,
	}},
	// github.com/spatie/laravel-csp, src/Presets/PlausibleAnalytics.php
	{name: "Plausible", at: []string{"plausible.io"}, needs: map[string]string{scriptSrc: "https://plausible.io", connectSrc: "https://plausible.io"}},
	// github.com/umami-software/umami/issues/4326: where data goes has moved between umami.dev and umami.is. The script
	// has come from hosts by region too: github.com/ijkml/nuxt-umami/issues/82
	{name: "Umami", at: []string{"*.umami.is"}, needs: map[string]string{
		scriptSrc: "https://*.umami.is", connectSrc: "https://*.umami.is https://*.umami.dev",
	}},
	// github.com/spatie/laravel-csp, src/Presets/Fathom.php
	{name: "Fathom", at: []string{"cdn.usefathom.com"}, needs: map[string]string{
		scriptSrc: "https://cdn.usefathom.com", imgSrc: "https://cdn.usefathom.com", connectSrc: "https://cdn.usefathom.com",
	}},
	// goatcounter.com/help/csp; github.com/arp242/goatcounter, public/count.v5.js, for pictures and the visitor counter's frame
	{name: "GoatCounter", at: []string{"gc.zgo.at"}, needs: map[string]string{
		scriptSrc: "https://gc.zgo.at", connectSrc: "https://*.goatcounter.com", imgSrc: "https://*.goatcounter.com", frameSrc: "https://*.goatcounter.com",
	}},
	// matomo.org/faq/general/faq_20904, with the account's host for matomo.php. Its plugins load scripts from there:
	// github.com/etalab/transport-site/issues/5062
	{name: "Matomo", at: []string{"cdn.matomo.cloud"}, needs: map[string]string{
		scriptSrc: "https://*.matomo.cloud", imgSrc: "https://*.matomo.cloud", connectSrc: "https://*.matomo.cloud",
	}},
	// developers.cloudflare.com/fundamentals/reference/policies-compliances/content-security-policies
	{name: "Cloudflare Web Analytics", at: []string{"static.cloudflareinsights.com"}, needs: map[string]string{
		scriptSrc: "https://static.cloudflareinsights.com", connectSrc: "https://cloudflareinsights.com",
	}},
	// developers.cloudflare.com/turnstile/reference/content-security-policy
	{name: "Cloudflare Turnstile", at: []string{"challenges.cloudflare.com"}, needs: map[string]string{
		scriptSrc: "https://challenges.cloudflare.com", frameSrc: "https://challenges.cloudflare.com",
	}},
	// docs.simpleanalytics.com/csp
	{name: "Simple Analytics", at: []string{"scripts.simpleanalyticscdn.com"}, needs: map[string]string{
		scriptSrc: "https://scripts.simpleanalyticscdn.com", imgSrc: "https://queue.simpleanalyticscdn.com", connectSrc: "https://queue.simpleanalyticscdn.com",
	}},
	// github.com/spatie/laravel-csp, src/Presets/Clarity.php
	{name: "Microsoft Clarity", at: []string{"*.clarity.ms"}, needs: map[string]string{
		scriptSrc: "https://*.clarity.ms https://c.bing.com", imgSrc: "https://*.clarity.ms https://c.bing.com",
		connectSrc: "https://*.clarity.ms https://c.bing.com",
	}},
	// github.com/bbc/simorgh, src/server/utilities/cspHeader/directives.js, for frames and pictures. The script loads
	// another one, in a copy of 2020 from s.ytimg.com: gist.github.com/cookpete/92eb0bf00704038061be0c9b08c18ae8
	{name: "YouTube's player", at: []string{"www.youtube.com/iframe_api", "www.youtube.com/player_api"}, mark: "youtube.com/iframe_api", needs: map[string]string{
		scriptSrc: "https://www.youtube.com https://s.ytimg.com", imgSrc: "https://i.ytimg.com",
		frameSrc: "https://www.youtube.com https://www.youtube-nocookie.com",
	}},
	// github.com/vimeo/player.js, src/lib/embed.js, which inserts markup that vimeo.com answers; of
	// github.com/spatie/laravel-csp, src/Presets/Vimeo.php, the pictures
	{name: "Vimeo's player", at: []string{"player.vimeo.com"}, needs: map[string]string{
		scriptSrc: "https://player.vimeo.com", frameSrc: "https://player.vimeo.com", imgSrc: "https://*.vimeocdn.com", connectSrc: "https://vimeo.com",
		styleSrcAttr: unsafeInline,
	}},
	// github.com/bbc/simorgh, src/server/utilities/cspHeader/directives.js, where requests are open; the hosts of x.com
	// beside those of twitter.com
	{name: "X", at: []string{"platform.twitter.com", "platform.x.com"}, needs: map[string]string{
		scriptSrc: "https://*.twitter.com https://*.x.com https://*.twimg.com", styleSrc: "https://*.twitter.com https://*.x.com https://*.twimg.com " + unsafeInline,
		imgSrc: "https://*.twitter.com https://*.x.com https://*.twimg.com", connectSrc: anyHost, frameSrc: "https://*.twitter.com https://*.x.com",
	}},
	// github.com/bbc/simorgh, src/server/utilities/cspHeader/directives.js, where requests are open
	{name: "Instagram", at: []string{"www.instagram.com/embed.js", "platform.instagram.com"}, needs: map[string]string{
		scriptSrc: "https://www.instagram.com https://platform.instagram.com", frameSrc: "https://www.instagram.com", styleSrc: unsafeInline,
		imgSrc: "https://*.cdninstagram.com", connectSrc: anyHost,
	}},
	// github.com/artifactshare/artifactshare, apps/web/workers/bundle-sandbox.ts; the pictures from
	// github.com/bbc/simorgh, src/server/utilities/cspHeader/directives.js
	{name: "TikTok", at: []string{"www.tiktok.com/embed.js"}, needs: map[string]string{
		scriptSrc: "https://www.tiktok.com https://*.ttwstatic.com", styleSrc: "https://*.ttwstatic.com " + unsafeInline,
		imgSrc: "https://*.tiktokcdn.com", connectSrc: "https://www.tiktok.com", frameSrc: "https://www.tiktok.com",
	}},
	// In part: github.com/hackmdio/codimd/pull/1105, the stylesheet's host
	{name: "GitHub Gist", at: []string{"gist.github.com"}, needs: map[string]string{
		scriptSrc: "https://gist.github.com", styleSrc: "https://github.githubassets.com " + unsafeInline,
		imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost,
	}},
	// github.com/spatie/laravel-csp, src/Presets/GoogleRecaptcha.php, and the same of www.recaptcha.net, which
	// docs.cloud.google.com/recaptcha/docs/faq puts in the place of www.google.com; styles:
	// github.com/google/recaptcha/issues/107
	{name: "reCAPTCHA", at: []string{"www.google.com/recaptcha/", "www.recaptcha.net/recaptcha/"}, needs: map[string]string{
		scriptSrc:  "https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/ https://www.recaptcha.net/recaptcha/",
		connectSrc: "https://www.google.com/recaptcha/ https://www.recaptcha.net/recaptcha/", styleSrc: unsafeInline,
		frameSrc: "https://www.google.com/recaptcha/ https://recaptcha.google.com/recaptcha/ https://www.recaptcha.net/recaptcha/",
	}},
	// docs.hcaptcha.com, "Content-Security-Policy Settings"
	{name: "hCaptcha", at: []string{"hcaptcha.com", "*.hcaptcha.com"}, needs: map[string]string{
		scriptSrc: "https://hcaptcha.com https://*.hcaptcha.com", styleSrc: "https://hcaptcha.com https://*.hcaptcha.com",
		connectSrc: "https://hcaptcha.com https://*.hcaptcha.com", frameSrc: "https://hcaptcha.com https://*.hcaptcha.com",
	}},
	// In part: github.com/spatie/laravel-csp, src/Presets/Stripe.php, without *.js.stripe.com and maps.googleapis.com
	{name: "Stripe", at: []string{"js.stripe.com"}, needs: map[string]string{
		scriptSrc: "https://js.stripe.com https://*.js.stripe.com https://connect-js.stripe.com https://maps.googleapis.com", styleSrc: unsafeInline,
		imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost,
	}},
	// In part: the npm packages @firebase/auth, analytics and app-check, the scripts of Google's hosts;
	// docs.velt.dev/security/content-security-policy, the two hosts of the database
	{name: "Firebase", at: []string{"www.gstatic.com/firebasejs/"}, mark: "firebasejs/", needs: map[string]string{
		scriptSrc: "https://www.gstatic.com/firebasejs/ https://apis.google.com https://*.firebaseio.com https://*.firebasedatabase.app " +
			"https://www.googletagmanager.com https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/",
		imgSrc: anyHost, connectSrc: anyHost + " wss://*.firebaseio.com wss://*.firebasedatabase.app", frameSrc: anyHost,
	}},
	// algolia.com/doc/guides/building-search-ui/algolia-experiences/troubleshooting
	{name: "Algolia", at: []string{"*.algolia.com", "*.algolia.net"}, mark: "docsearch(", needs: map[string]string{
		scriptSrc: "https://*.algolia.com", connectSrc: algoliaHosts,
	}},
	// In part: github.com/mozilla/addons-server/issues/1578, that it evaluates text
	{name: "Google's search box", at: []string{"cse.google.com", "www.google.com/cse/"}, needs: map[string]string{
		scriptSrc: "https://*.google.com https://*.googleapis.com https://*.gstatic.com https://*.googleadservices.com https://syndicatedsearch.goog " + unsafeEval,
		styleSrc:  "https://*.google.com " + unsafeInline, imgSrc: anyHost, connectSrc: anyHost, frameSrc: anyHost,
	}},
}

// algoliaHosts are those that Algolia's page names and that its packages algoliasearch and @docsearch/js ask.
const algoliaHosts = "https://*.algolia.com https://*.algolia.net https://*.algolianet.com https://*.algolia.io"

// libraries are scripts that many hosts serve, told by a mark in the path. Each was read in the package that npm has of it.
var libraries = []service{
	{name: "Alpine.js", mark: "/alpinejs", needs: map[string]string{scriptSrc: unsafeEval}}, // not @alpinejs/csp: alpinejs.dev/advanced/csp
	{name: "petite-vue", mark: "petite-vue", needs: map[string]string{scriptSrc: unsafeEval}},
	{name: "Vue", mark: "/vue@", needs: map[string]string{scriptSrc: unsafeEval}},
	{name: "Vue", mark: "/libs/vue/", needs: map[string]string{scriptSrc: unsafeEval}},
	{name: "Handlebars", mark: "handlebars", needs: map[string]string{scriptSrc: unsafeEval}},
	{name: "MathJax", mark: "mathjax", needs: map[string]string{ // fonts and extensions are packages of their own
		scriptSrc: "https://cdn.jsdelivr.net/npm/@mathjax/", fontSrc: "https://cdn.jsdelivr.net/npm/@mathjax/",
		connectSrc: "https://cdn.jsdelivr.net/npm/", workerSrc: blobScheme,
	}},
	{name: "Algolia", mark: "docsearch", needs: map[string]string{connectSrc: algoliaHosts}},
	{name: "Algolia", mark: "algoliasearch", needs: map[string]string{connectSrc: algoliaHosts}},
}

// packageHosts serve files of anybody, and in front of the path how many parts name a package. A policy names the
// package: the host as a whole would allow all scripts there are.
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
