package sitegen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Bounds of the number of words of a page's text.
const (
	minWords = 300
	maxWords = 1200
)

// The first page's date, and the distance from each page to the next: 10,000 pages take eight years.
var (
	firstDate = time.Date(2016, 1, 4, 8, 0, 0, 0, time.UTC)
	pageEvery = 7 * time.Hour
)

func section(n int) string  { return sections[n%len(sections)] }
func pageName(n int) string { return fmt.Sprintf("page-%05d", n) }

// writer writes the Markdown of one page and counts its words.
type writer struct {
	bytes.Buffer
	rng   *rand.Rand
	page  int
	words int
}

// Page returns the Markdown of page n of any site with that seed, front matter included: what Generate writes.
func Page(seed int64, n int) []byte {
	w := &writer{rng: rand.New(rand.NewPCG(uint64(seed), uint64(n))), page: n}
	w.frontMatter()
	w.text(minWords + w.rng.IntN(maxWords-minWords+1))
	return w.Bytes()
}

func (w *writer) frontMatter() {
	date := firstDate.Add(time.Duration(w.page) * pageEvery)
	fmt.Fprintf(w, "---\ntitle: %q\n", capitalize(w.phrase(3, 7)))
	fmt.Fprintf(w, "date: %s\n", date.Format(time.RFC3339))
	fmt.Fprintf(w, "description: %q\n", w.sentence())
	fmt.Fprintf(w, "tags: [%s]\n---\n", strings.Join(w.tags(), ", "))
	w.words = 0
}

// tags returns one to four different tags.
func (w *writer) tags() []string {
	picked := make([]string, 0, 4)
	for _, i := range w.rng.Perm(len(tags))[:1+w.rng.IntN(4)] {
		picked = append(picked, tags[i])
	}
	return picked
}

// text writes target words in paragraphs, with what an article has between them: headings, lists, code and a link.
// The last paragraph is cut where the target is reached.
func (w *writer) text(target int) {
	for block := 0; w.words < target; block++ {
		w.WriteByte('\n')
		switch {
		case block > 0 && block%4 == 0:
			fmt.Fprintf(w, "## %s\n\n", capitalize(w.phrase(2, 5)))
			w.paragraph(target)
		case block%7 == 5:
			w.list(target)
		case block%9 == 6:
			w.code()
		default:
			w.paragraph(target)
		}
	}
}

func (w *writer) paragraph(target int) {
	for i := range 3 + w.rng.IntN(4) {
		if i > 0 {
			if w.words >= target {
				break
			}
			w.WriteByte(' ')
		}
		w.WriteString(w.sentence())
		if i == 1 && w.page > 1 && w.rng.IntN(3) == 0 {
			w.link()
		}
	}
	w.WriteByte('\n')
}

// link points to an earlier page, which exists however many pages there are.
func (w *writer) link() {
	to := 1 + w.rng.IntN(w.page-1)
	fmt.Fprintf(w, " See [%s](/%s/%s/).", w.phrase(2, 4), section(to), pageName(to))
	w.words++
}

func (w *writer) list(target int) {
	for i := range 3 + w.rng.IntN(3) {
		if i > 0 && w.words >= target {
			return
		}
		fmt.Fprintf(w, "- %s\n", w.sentence())
	}
}

func (w *writer) code() {
	fmt.Fprintf(w, "```yaml\n%s:\n", w.word())
	for range 2 + w.rng.IntN(4) {
		fmt.Fprintf(w, "  %s: %s\n", w.word(), w.word())
	}
	w.WriteString("```\n")
}

// sentence returns 7 to 18 words with a comma in the middle, so that every page has commas enough for Touch.
func (w *writer) sentence() string {
	return capitalize(w.phrase(3, 8)) + ", " + w.phrase(4, 10) + "."
}

func (w *writer) phrase(least, most int) string {
	picked := make([]string, least+w.rng.IntN(most-least+1))
	for i := range picked {
		picked[i] = w.word()
	}
	return strings.Join(picked, " ")
}

// word prefers the words at the beginning of the list, as languages do: compressors and Hugo meet natural repetition.
func (w *writer) word() string {
	w.words++
	x := w.rng.Float64()
	return vocabulary[int(x*x*float64(len(vocabulary)))]
}

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
