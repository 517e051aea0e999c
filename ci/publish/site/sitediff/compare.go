package sitediff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Compare reads two built sites. An error means that one of them could not be read; differences are no error.
func Compare(ctx context.Context, first, second string) (Report, error) {
	a, err := open(first)
	if err != nil {
		return Report{}, err
	}
	b, err := open(second)
	if err != nil {
		return Report{}, err
	}
	report := Report{Files: len(a.names)}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.names, b.names))))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		inFirst, inSecond := a.holds(name), b.holds(name)
		switch {
		case !inSecond:
			report.add(presenceCause, Example{File: name, First: "there"})
		case !inFirst:
			report.add(presenceCause, Example{File: name, Second: "there"})
		default:
			one, err := fs.ReadFile(a.files, name)
			two, err2 := fs.ReadFile(b.files, name)
			if err := errors.Join(err, err2); err != nil {
				return Report{}, err
			}
			report.compare(name, one, two)
			continue
		}
		report.Differing++
	}
	report.sort()
	return report, nil
}

// built is one of the sites.
type built struct {
	files fs.FS
	names []string
}

func open(dir string) (built, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return built{}, fmt.Errorf("%s is no folder: name the folder of a built site", dir)
	}
	b := built{files: os.DirFS(dir)}
	err := fs.WalkDir(b.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			b.names = append(b.names, name)
		}
		return err
	})
	slices.Sort(b.names)
	return b, err
}

func (b built) holds(name string) bool {
	_, found := slices.BinarySearch(b.names, name)
	return found
}

// compare judges the differences of one file that both sites have.
func (r *Report) compare(name string, first, second []byte) {
	if bytes.Equal(first, second) {
		return
	}
	r.Differing++
	if !isText(first) || !isText(second) {
		r.add(binaryCause, Example{File: name, First: size(first), Second: size(second)})
		return
	}
	changes := changesOf(pieces(string(first)), pieces(string(second)))
	if len(changes) == 0 {
		r.add(otherCause, aroundDifference(name, string(first), string(second)))
		return
	}
	byCause := map[string][]change{}
	for _, c := range changes {
		for _, single := range c.singles() {
			name := causeOf(single).name
			byCause[name] = append(byCause[name], single)
		}
	}
	// What moved is another text where it went away and where it came, and numbers that moved look random.
	for _, names := range [][]string{{otherCause.name, randomCause.name}, {otherCause.name}} {
		var moved change
		for _, name := range names {
			moved = moved.with(byCause[name]...)
		}
		if len(moved.removed) > 0 && moved.isReordered() {
			for _, name := range names {
				delete(byCause, name)
			}
			byCause[orderCause.name] = []change{moved}
		}
	}
	for _, why := range allCauses {
		if changes := byCause[why.name]; len(changes) > 0 {
			r.add(why, Example{File: name, First: shown(changes[0].removed), Second: shown(changes[0].added)})
		}
	}
}

func isText(content []byte) bool { return utf8.Valid(content) && !bytes.Contains(content, []byte{0}) }

func size(content []byte) string { return fmt.Sprintf("%d bytes", len(content)) }

// cut is where a piece ends: markup, quotes, lines, and the names of attributes, which a minifier may leave without quotes.
var cut = regexp.MustCompile(`&#34;|&quot;|[<>"'\n\r]+|\s+[\w:@.-]{2,}=`)

// pieces cuts a text up. What it is cut at is left out: a difference in that alone shows in what stands beside it.
func pieces(text string) []string {
	return slices.DeleteFunc(cut.Split(text, -1), func(piece string) bool { return strings.TrimSpace(piece) == "" })
}

// aroundDifference shows two texts that differ between the pieces alone.
func aroundDifference(name, first, second string) Example {
	at := 0
	for at < min(len(first), len(second)) && first[at] == second[at] {
		at++
	}
	from := max(0, at-widest/2)
	return Example{File: name, First: shown([]string{strings.ToValidUTF8(first[from:], "")}), Second: shown([]string{strings.ToValidUTF8(second[from:], "")})}
}

// change is what one file has in the place of what the other has.
type change struct{ removed, added []string }

// with is the change and others as one.
func (c change) with(others ...change) change {
	for _, other := range others {
		c.removed, c.added = slices.Concat(c.removed, other.removed), slices.Concat(c.added, other.added)
	}
	return c
}

// singles are the changes of one piece each, where it can be told which piece became which.
func (c change) singles() []change {
	if len(c.removed) != len(c.added) {
		return []change{c}
	}
	singles := make([]change, len(c.removed))
	for i := range singles {
		singles[i] = change{c.removed[i : i+1], c.added[i : i+1]}
	}
	return singles
}

// isReordered reports whether both have the same pieces.
func (c change) isReordered() bool {
	return slices.Equal(slices.Sorted(slices.Values(c.removed)), slices.Sorted(slices.Values(c.added)))
}

// changesOf compares pieces as the lines of a text.
func changesOf(first, second []string) []change {
	differ := diffmatchpatch.New()
	differ.DiffTimeout = 0 // its result would depend on the machine
	a, b, lines := differ.DiffLinesToRunes(strings.Join(first, "\n")+"\n", strings.Join(second, "\n")+"\n")
	var changes []change
	inside := false
	for _, part := range differ.DiffCharsToLines(differ.DiffMainRunes(a, b, false), lines) {
		if part.Type == diffmatchpatch.DiffEqual {
			inside = false
			continue
		}
		if !inside {
			changes, inside = append(changes, change{}), true
		}
		last := &changes[len(changes)-1]
		texts := strings.Split(strings.TrimSuffix(part.Text, "\n"), "\n")
		if part.Type == diffmatchpatch.DiffDelete {
			last.removed = append(last.removed, texts...)
		} else {
			last.added = append(last.added, texts...)
		}
	}
	return changes
}

// widest is how much of a difference an example shows, in bytes.
const widest = 80

// shown joins pieces, shortened to where a reader still sees the place.
func shown(pieces []string) string {
	text := strings.Join(strings.Fields(strings.Join(pieces, " | ")), " ")
	if len(text) <= widest {
		return text
	}
	return strings.ToValidUTF8(text[:widest], "") + "…"
}
