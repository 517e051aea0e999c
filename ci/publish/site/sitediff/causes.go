package sitediff

import (
	"regexp"
	"strings"
)

// cause is one way in which builds come to differ.
type cause struct {
	name string
	what string
	fix  string
	// same reports whether two pieces differ by this cause alone.
	same func(first, second string) bool
}

// The causes that are not told by two pieces.
var (
	orderCause = cause{name: "order", what: "the same things in another order",
		fix: "sort what the template ranges over, down to a value that no two of them share; languages need weights of their own"}
	presenceCause = cause{name: "presence", what: "a file that one build alone has",
		fix: "look at what makes it: a processed or fetched resource whose content or options differ, a page with another address, a date between the builds"}
	binaryCause = cause{name: "binary", what: "other bytes in a file that is no text",
		fix: "if it is fetched (resources.GetRemote), keep it in the site's assets; if a tool makes it, make that repeatable"}
	otherCause = cause{name: "other", what: "another text",
		fix: "look for what the template takes it from: fetched data (resources.GetRemote), a map's order, a page that two sources write"}
)

// randomCause explains two pieces, and yet what it explains may be an order.
var randomCause = cause{name: "random", what: "an id or number that is another one in each build",
	fix:  "make it of what it stands for: a hash of the page's path (crypto.SHA256 .RelPermalink) or the place in it (.Ordinal), not math.Rand, math.Counter or collections.Shuffle",
	same: equalWithout(chance)}

// causes are judged in this order; the first that explains two pieces is taken.
var causes = []cause{
	{name: "term", what: "another spelling of the same words, as of a term",
		fix:  "write the term alike on all pages, or give it a page (content/tags/TERM/_index.md) with a title",
		same: func(a, b string) bool { return spelling(a) == spelling(b) }},
	{name: "fingerprint", what: "the fingerprint of a file whose content differs",
		fix:  "mend what makes that file differ; this follows from it",
		same: equalWithout(fingerprint)},
	{name: "time", what: "a time that is the build's",
		fix:  "use the page's .Date or .Lastmod instead of now or time.Now, and give every page a date; leave the year of a copyright to the content",
		same: equalWithout(moment)},
	randomCause,
}

// equalWithout reports whether two pieces are equal when what a pattern finds in them is left out.
func equalWithout(pattern *regexp.Regexp) func(first, second string) bool {
	return func(first, second string) bool {
		return pattern.MatchString(first) && pattern.ReplaceAllString(first, "\x00") == pattern.ReplaceAllString(second, "\x00")
	}
}

// spelling is what spellings of a term have in common.
func spelling(text string) string {
	return strings.ReplaceAll(strings.ToLower(text), " ", "-")
}

const months = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`

var (
	// moment is a time in the forms that pages have: 2026-01-02T03:04:05Z and its parts, Fri, 02 Jan 2026, January 2, 2026,
	// 2 January 2026, a time of day, and seconds to nanoseconds since 1970.
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))*(?: m=[+-][\d.]+)?` +
		`|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:\d{1,2} ` + months + `|` + months + ` \d{1,2},?) \d{4}` +
		`|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))*` +
		`|\b1[5-9]\d{8}(?:\d{3}){0,3}\b|\b20\d{12}\b`)
	// fingerprint is a hash in a file's name or in an integrity attribute.
	fingerprint = regexp.MustCompile(`[._-](?:[0-9a-f]{128}|[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{32})(?:\.[0-9a-z]+)+|_hu_?[0-9a-f]{8,}|\bsha(?:256|384|512)-[A-Za-z0-9+/]+=*`)
	// chance is a number, or an id: a word with a digit in it, as UUIDs, hexadecimal numbers and base64 are or consist of.
	chance = regexp.MustCompile(`[\w+/]*\d[\w+/]*`)
)

// allCauses are those that two texts can have.
var allCauses = append([]cause{orderCause, otherCause}, causes...)

// causeOf explains what one file has instead of what the other has.
func causeOf(c change) cause {
	if len(c.removed) == 1 && len(c.added) == 1 {
		for _, why := range causes {
			if why.same(c.removed[0], c.added[0]) {
				return why
			}
		}
	}
	return otherCause
}
