package pagechoice

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/site/sitetest"
)

var blog = &url.URL{Scheme: "https", Host: "blog.example", Path: "/"}

// What is found in a golden site are the pages that are chosen of it.
func TestAPageOfEachKindIsChosen(t *testing.T) {
	sitetest.Golden(t, "*.txtar", func(t *testing.T, _, dir string) string {
		chosen, err := Choose(t.Context(), dir, blog, 40)
		if err != nil {
			t.Fatal(err)
		}
		var pages strings.Builder
		for _, page := range chosen.Pages {
			fmt.Fprintln(&pages, page)
		}
		return pages.String()
	})
}

var letters = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")

// large is a site as themes make them: each page has a class, an identifier and a script of its own, and content as it comes.
func large(articles int) string {
	var site strings.Builder
	page := func(path, language, body string) {
		fmt.Fprintf(&site, "-- %sindex.html --\n<!doctype html><html lang=%s><head><title>%s</title><script src=/js/main.%032x.js></script></head>"+
			"<body class=\"page-%s\"><header><nav><ul><li>x</ul></nav></header>%s<footer>x</footer></body></html>\n",
			path, language, path, len(path), strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"), body)
	}
	for _, language := range []string{"en", "it"} {
		folder := strings.TrimPrefix(language+"/", "en/")
		page(folder, language, "<main><section>hero</section><section><article>a</article></section></main>")
		page(folder+"tags/", language, "<main><div class=cloud></div></main>")
		for i := range articles / 2 {
			body := fmt.Sprintf("<script>var seen_%s = \"posts/%d\"; views(%d)</script>", letters.Replace(fmt.Sprint(i)), i, i)
			for depth := range i % 9 {
				body += strings.Repeat("<div>", depth) + "<p>text</p>" + strings.Repeat("</div>", depth)
			}
			if i%50 == 7 {
				body += "<script src=/js/math.js></script>"
			}
			aside := ""
			if i%3 == 0 {
				aside = "<aside><nav>contents</nav></aside>"
			}
			page(fmt.Sprintf("%sposts/%d/", folder, i), language, "<main>"+aside+"<article>"+body+"</article></main>")
		}
	}
	return site.String()
}

func TestALargeSiteGivesAFewPages(t *testing.T) {
	chosen, err := Choose(t.Context(), sitetest.Unpack(t, large(900)), blog, 40)
	if err != nil {
		t.Fatal(err)
	}
	if chosen.Of != 904 || len(chosen.Pages) < 6 || len(chosen.Pages) > 25 || chosen.LeftOut != 0 {
		t.Errorf("%d of %d are chosen, %d left out: %v", len(chosen.Pages), chosen.Of, chosen.LeftOut, chosen.Pages)
	}
	shown := fmt.Sprint(chosen.Pages)
	for _, want := range []string{"/tags/", "/js/math.js", "inline script of a page's own"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is shown by none of %s", want, shown)
		}
	}
	if strings.Contains(shown, "/it/") {
		t.Errorf("a language is a kind of its own: %s", shown)
	}
}

func TestPagesThatAreTooManyAreCounted(t *testing.T) {
	folder := sitetest.Unpack(t, large(100))
	all, err := Choose(t.Context(), folder, blog, 40)
	if err != nil {
		t.Fatal(err)
	}
	few, err := Choose(t.Context(), folder, blog, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(few.Pages) != 2 || few.LeftOut != len(all.Pages)-2 || few.Pages[0].Path != "/" {
		t.Errorf("%d are chosen, %d left out, of %d: %v", len(few.Pages), few.LeftOut, len(all.Pages), few.Pages)
	}
}
