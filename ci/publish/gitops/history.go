package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/manifest"
)

// Entry is one commit that changed the addressed reference.
type Entry struct {
	Commit  string    // of the GitOps repository
	Time    time.Time // of the commit, in UTC
	Author  string
	Email   string // the author's
	Subject string
	// Action is empty where the commit was made by hand or by another tool.
	Action Action
	// Old and New are the reference before and after; zero where the manifest was not there, or did not hold it exactly
	// once.
	Old, New manifest.Reference

	// From the commit's trailers; empty where it has none.
	SourceCommit     string
	SourceRepository string
	Digest           string
}

// Entries are what was published, newest first.
type Entries []Entry

// History reads from the branch's log which commits changed the addressed reference, newest first, those made by hand
// included; a limit of 0 means all. Commits that changed something else in the manifest are not in it, and neither is what
// the manifest was under another path.
func History(ctx context.Context, repository Repository, path string, selector manifest.Selector, limit int) (Entries, error) {
	w, err := openWorkspace(ctx, repository, path)
	if err != nil {
		return nil, err
	}
	entries, err := w.history(ctx, selector, limit)
	return entries, errors.Join(err, w.Close())
}

func (w *workspace) history(ctx context.Context, selector manifest.Selector, limit int) (Entries, error) {
	tip, err := w.fetchHistory(ctx, w.repository.Branch)
	if err != nil {
		return nil, w.fail("history", err)
	}
	entries, err := w.entries(ctx, tip, selector, limit, w.fetchBlobs)
	if err != nil {
		return nil, w.fail("history", err)
	}
	if len(entries) == 0 { // a wrong path or selector would look the same as "never published"
		if _, err := w.current(ctx, tip, selector); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// current is the reference in the manifest at a commit.
func (w *workspace) current(ctx context.Context, commit string, selector manifest.Selector) (manifest.Reference, error) {
	at, err := w.read(ctx, commit)
	if err != nil {
		return manifest.Reference{}, w.fail("history", err)
	}
	location, err := manifest.Current(at.content, selector)
	if err != nil {
		failure := w.newError("history", nil)
		failure.Detail, failure.Err = fmt.Sprintf("%s: %v", w.path, err), err
		return manifest.Reference{}, failure
	}
	return location.Reference, nil
}

// Named is the newest entry of History that gave the manifest the reference which it has now: a later one may stand in the log that a merge put aside. Of
// one that no commit in the log gave it, the reference is all there is.
func Named(ctx context.Context, repository Repository, path string, selector manifest.Selector) (Entry, error) {
	w, err := openWorkspace(ctx, repository, path)
	if err != nil {
		return Entry{}, err
	}
	entry, err := w.named(ctx, selector)
	return entry, errors.Join(err, w.Close())
}

func (w *workspace) named(ctx context.Context, selector manifest.Selector) (Entry, error) {
	tip, err := w.fetchHistory(ctx, w.repository.Branch)
	if err != nil {
		return Entry{}, w.fail("history", err)
	}
	now, err := w.current(ctx, tip, selector)
	if err != nil {
		return Entry{}, err
	}
	for _, limit := range []int{1, 0} { // nearly always it is the newest of all
		entries, err := w.entries(ctx, tip, selector, limit, w.fetchBlobs)
		if err != nil {
			return Entry{}, w.fail("history", err)
		}
		for _, entry := range entries {
			if entry.New == now {
				return entry, nil
			}
		}
	}
	return Entry{New: now}, nil
}

// Recorded tells whether a commit that put a tag into the manifest says which digest it meant, and that is this one:
// a commit of the branch, or of the one that proposes the change, which need not be there and may be "".
func Recorded(
	ctx context.Context, repository Repository, path string, selector manifest.Selector, proposed string,
	image manifest.Reference,
) (bool, error) {
	w, err := openWorkspace(ctx, repository, path)
	if err != nil {
		return false, err
	}
	recorded, err := w.recorded(ctx, w.repository.Branch, selector, image)
	if err == nil && !recorded && proposed != "" {
		var exists bool
		if exists, err = w.hasBranch(ctx, proposed); exists {
			recorded, err = w.recorded(ctx, proposed, selector, image)
		}
	}
	if err != nil {
		err = w.fail("history", err)
	}
	return recorded, errors.Join(err, w.Close())
}

func (w *workspace) recorded(
	ctx context.Context, branch string, selector manifest.Selector, image manifest.Reference,
) (bool, error) {
	tip, err := w.fetchHistory(ctx, branch)
	if err != nil {
		return false, err
	}
	entries, err := w.entries(ctx, tip, selector, 0, w.fetchBlobs)
	return slices.ContainsFunc(entries, func(e Entry) bool {
		return e.New.Tag == image.Tag && image.Digest != "" && e.Recorded() == image.Digest
	}), err
}

// Recorded is the digest that an entry's commit meant: by its trailer, else by the reference; empty where neither
// tells.
func (e Entry) Recorded() string { return cmp.Or(e.Digest, e.New.Digest) }

// sourceInTag is the commit at the end of a tag, as in blog-1a2b3c4, and the number of its rebuild, as in blog-1a2b3c4-r2.
var sourceInTag = regexp.MustCompile(`(?:^|[^0-9a-z])([0-9a-f]{7,64})(?:-r([1-9][0-9]*))?$`)

// Rebuild is which image of its source commit an entry's is: 1 for the first one, 2 for the tag that ends in -r2; 0 where the
// tag names no commit.
func (e Entry) Rebuild() int {
	found := sourceInTag.FindStringSubmatch(e.New.Tag)
	switch {
	case found == nil:
		return 0
	case found[2] == "":
		return 1
	}
	number, _ := strconv.Atoi(found[2])
	return number
}

// Source is the commit an entry's image was built from: by its trailer, else by its tag; empty where neither tells.
func (e Entry) Source() string {
	if e.SourceCommit != "" {
		return e.SourceCommit
	}
	if found := sourceInTag.FindStringSubmatch(e.New.Tag); found != nil {
		return found[1]
	}
	return ""
}

// Find returns the newest entry that put an image into the manifest: of a source commit, full or abbreviated to at least 4 digits,
// of one of its rebuilds (1a2b3c4-r2; -r1 is the first image), or of a whole tag. Its New is the reference and its Digest, where
// known, what the registry must still have. Errors are ErrNotPublished, with a list of what was, and ErrRequest.
func (all Entries) Find(wanted string) (Entry, error) {
	asked := abbreviated.FindStringSubmatch(strings.ToLower(wanted))
	if asked == nil {
		for _, entry := range all {
			if wanted != "" && entry.New.Tag == wanted {
				return entry, nil
			}
		}
		return Entry{}, fmt.Errorf("%w: %q is no commit and no tag that was published; give 4 or more hexadecimal digits, or one of %s",
			ErrRequest, wanted, all.known())
	}
	commit := asked[1]
	number, _ := strconv.Atoi(asked[2]) // 0: whichever is newest
	var found *Entry
	for i, entry := range all {
		source := entry.Source()
		if number != 0 && entry.Rebuild() != number {
			continue
		}
		// Either may be the shorter one: a tag holds seven digits.
		if source == "" || !strings.HasPrefix(source, commit) && !strings.HasPrefix(commit, source) {
			continue
		}
		if found == nil {
			found = &all[i]
			continue
		}
		if known := found.Source(); !strings.HasPrefix(known, source) && !strings.HasPrefix(source, known) {
			return Entry{}, fmt.Errorf("%w: %s could be %s or %s; give more digits", ErrRequest, commit, found.Source(), source)
		}
	}
	if found == nil {
		return Entry{}, fmt.Errorf("%w: no image of commit %s; known are %s", ErrNotPublished, wanted, all.known())
	}
	return *found, nil
}

var abbreviated = regexp.MustCompile(`^([0-9a-f]{4,64})(?:-r([1-9][0-9]*))?$`)

// known lists each published image once, newest first.
func (all Entries) known() string {
	const shown = 10
	var names []string
	seen := map[string]bool{}
	for _, entry := range all {
		source := entry.Source()
		if source == "" || seen[entry.New.Tag] {
			continue
		}
		seen[entry.New.Tag] = true
		names = append(names, fmt.Sprintf("%.7s (%s, %s)", source, entry.New.Tag, entry.Time.Format(time.DateOnly)))
	}
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > shown:
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d older", len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// record is one commit of the log that changed the file.
type record struct {
	Entry
	parents          []string
	oldBlob, newBlob string // empty where the file was not there
}

// logFormat begins each commit with a NUL and puts one after each field; what follows the last is the line of --raw.
// Neither names nor messages can hold a NUL.
const (
	logFormat = "%x00%H%x00%P%x00%ct%x00%an%x00%ae%x00%s%x00%B%x00"
	logFields = 8 // those seven and the line of --raw
)

// trailerLine is one of castle's lines in a message. Git itself reads trailers from the last paragraph alone, which GitHub does
// not leave the last: a squashed pull request may have Co-authored-by in a paragraph behind it, lines that end in CR where its
// text was edited in a browser, and several messages below each other.
var trailerLine = regexp.MustCompile(`(?m)^(` + strings.Join([]string{trailerAction, trailerCommit, trailerRepository, trailerDigest}, "|") + `): *([^\r\n]*?)[ \t\r]*$`)

// readTrailers takes an entry's trailers from the message of its commit. Where a message has several, as that of squashed
// commits does, the last ones hold: what came later replaced what came before.
func (e *Entry) readTrailers(message string) {
	for _, found := range trailerLine.FindAllStringSubmatch(message, -1) {
		switch value := found[2]; found[1] {
		case trailerAction:
			// Each message of ours begins with it, and what another one said before is not this one's.
			e.Action, e.SourceCommit, e.SourceRepository, e.Digest = Action(value), "", "", ""
		case trailerCommit:
			e.SourceCommit = value
		case trailerRepository:
			e.SourceRepository = value
		case trailerDigest:
			e.Digest = value
		}
	}
}

// prefetch gets many objects at once before they are read.
type prefetch func(ctx context.Context, blobs []string) error

// entries are the commits of a range that changed the reference, newest first, at most limit unless that is 0. Without a
// prefetch the manifests should be here already; git gets what is not.
//
// What was merged stands once, as the merge, since that is the commit that Flux got; what it published, its merged commit says.
func (w *workspace) entries(ctx context.Context, revisions string, selector manifest.Selector, limit int, get prefetch) (Entries, error) {
	records, err := w.log(ctx, revisions)
	if err != nil {
		return nil, err
	}
	references := map[string]manifest.Reference{"": {}} // by blob
	var changed []*record
	merges := false
	const batch = 64 // manifests per request to the remote
	for start := 0; start < len(records); start += batch {
		part := records[start:min(start+batch, len(records))]
		if err := w.resolve(ctx, part, selector, references, get); err != nil {
			return nil, err
		}
		for i := range part {
			r := &part[i]
			r.Old, r.New = references[r.oldBlob], references[r.newBlob]
			if r.Old != r.New {
				changed = append(changed, r)
				merges = merges || len(r.parents) > 1
			}
		}
		// A merge's commits may be in the next batch.
		if limit > 0 && len(changed) >= limit && !merges {
			break
		}
	}
	if merges {
		if changed, err = w.attribute(ctx, revisions, changed); err != nil {
			return nil, err
		}
	}
	var entries Entries
	for _, r := range changed {
		if limit > 0 && len(entries) == limit {
			break
		}
		entries = append(entries, r.Entry)
	}
	return entries, nil
}

// attribute makes one record of each merge and the commit whose reference it brought: where and when the branch got it the
// merge tells, what it is the commit. A merge that is none of the branch's own, as one of main into a pull request, brought
// nothing to the branch and is left out.
func (w *workspace) attribute(ctx context.Context, revisions string, changed []*record) ([]*record, error) {
	listed, err := w.git.Run(ctx, "rev-list", "--first-parent", revisions)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for line := range strings.Lines(listed) {
		own[strings.TrimSpace(line)] = true
	}
	dropped := map[*record]bool{}
	for i, merge := range changed {
		if len(merge.parents) < 2 || dropped[merge] {
			continue
		}
		brought, err := w.brought(ctx, merge, changed[i+1:])
		if err != nil {
			return nil, err
		}
		if brought == nil { // decided in the merge itself
			continue
		}
		if !own[merge.Commit] {
			dropped[merge] = true
			continue
		}
		if merge.Action == "" {
			merge.Action, merge.SourceCommit = brought.Action, brought.SourceCommit
			merge.SourceRepository, merge.Digest = brought.SourceRepository, brought.Digest
		}
		dropped[brought] = true
	}
	return slices.DeleteFunc(changed, func(r *record) bool { return dropped[r] }), nil
}

// brought is the newest of the older records that came by a merge and says what the merge says; nil where there is none.
func (w *workspace) brought(ctx context.Context, merge *record, older []*record) (*record, error) {
	var side map[string]bool
	for _, r := range older {
		if r.New != merge.New {
			continue
		}
		if slices.Contains(merge.parents[1:], r.Commit) { // the usual pull request: one commit
			return r, nil
		}
		if side == nil {
			side = map[string]bool{}
			listed, err := w.git.Run(ctx, append([]string{"rev-list", "^" + merge.parents[0]}, merge.parents[1:]...)...)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(listed) {
				side[strings.TrimSpace(line)] = true
			}
		}
		if side[r.Commit] {
			return r, nil
		}
	}
	return nil, nil
}

// log lists the commits of a range that changed the file, newest first.
func (w *workspace) log(ctx context.Context, revisions string) ([]record, error) {
	// Both sides of a merge are looked at, and the merge too where it changed the branch that it was merged into; it is
	// compared with that. Without --full-history, git shows one side of a merge that took the file from it whole.
	out, err := w.git.Run(ctx, "--literal-pathspecs", "log", "--date-order", "--full-history", "--show-pulls", "--diff-merges=first-parent", "--raw", "--no-abbrev",
		"--no-renames", "--format="+logFormat, revisions, "--", w.path)
	if err != nil || out == "" {
		return nil, err
	}
	fields := strings.Split(out, "\x00")[1:]
	if len(fields)%logFields != 0 {
		return nil, fmt.Errorf("git log answered %d fields, which is no multiple of %d", len(fields), logFields)
	}
	var records []record
	for ; len(fields) > 0; fields = fields[logFields:] {
		seconds, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git log: time of commit %s: %w", fields[0], err)
		}
		raw := strings.Fields(fields[7]) // ":100644 100644 old new M path"
		if len(raw) < 5 {
			continue
		}
		r := record{
			Entry: Entry{
				Commit: fields[0], Time: time.Unix(seconds, 0).UTC(), Author: fields[3], Email: fields[4], Subject: fields[5],
			},
			parents: strings.Fields(fields[1]), oldBlob: blobName(raw[2]), newBlob: blobName(raw[3]),
		}
		r.readTrailers(fields[6])
		records = append(records, r)
	}
	return records, nil
}

// blobName is empty for the name of all zeros that stands for "no file".
func blobName(name string) string {
	if strings.Trim(name, "0") == "" {
		return ""
	}
	return name
}

// resolve adds to references those of the blobs that records name, reading all manifests in one go.
func (w *workspace) resolve(ctx context.Context, records []record, selector manifest.Selector, references map[string]manifest.Reference,
	get prefetch) error {
	var wanted []string
	for _, r := range records {
		for _, blob := range []string{r.oldBlob, r.newBlob} {
			if _, known := references[blob]; !known {
				references[blob] = manifest.Reference{}
				wanted = append(wanted, blob)
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if get != nil {
		if err := get(ctx, wanted); err != nil {
			return err
		}
	}
	out, err := w.git.RunInput(ctx, strings.NewReader(strings.Join(wanted, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return err
	}
	for _, blob := range wanted {
		var name, kind string
		var size int
		header, rest, _ := strings.Cut(out, "\n")
		if _, err := fmt.Sscanf(header, "%s %s %d", &name, &kind, &size); err != nil || name != blob || len(rest) < size+1 {
			return fmt.Errorf("git cat-file answered %q for %s", header, blob)
		}
		// A manifest that does not parse, or holds the image twice, had no reference to speak of.
		if location, err := manifest.Current([]byte(rest[:size]), selector); err == nil {
			references[blob] = location.Reference
		}
		out = rest[size+1:]
	}
	return nil
}
