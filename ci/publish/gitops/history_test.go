package gitops

import (
	"errors"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/manifest"
)

func TestHistoryTellsWhatWasPublishedWhenNewestFirst(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	start := strings.TrimSpace(r.git(t, "rev-parse", "main"))
	first := mustUpdate(t, r.repository, publish("3f2a1bc"))
	// Neither the file's other lines nor other files make an entry.
	r.commit(t, "Another port", map[string]string{
		manifestPath: strings.NewReplacer(`blog-0000000"`, `blog-3f2a1bc"`, "containerPort: 80", "containerPort: 8080").Replace(deployment),
	})
	r.commit(t, "Unrelated", map[string]string{"README.md": "x\n"})
	hand := r.commit(t, "Try something", map[string]string{manifestPath: strings.Replace(deployment, `blog-0000000"`, `test"`, 1)})
	back := publish("3f2a1bc")
	back.Action = Rollback
	last := mustUpdate(t, r.repository, back)

	entries, err := History(t.Context(), r.repository, manifestPath, blog, 0)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		commit, old, new, author, subject string
		action                            Action
		source, digest                    string
	}
	var got []line
	for _, e := range entries {
		got = append(got, line{e.Commit, e.Old.Tag, e.New.Tag, e.Author, e.Subject, e.Action, e.SourceCommit, e.Digest})
		if e.Time.IsZero() {
			t.Errorf("%s has no time", e.Commit)
		}
	}
	full := "3f2a1bc" + strings.Repeat("0", 33)
	want := []line{
		{last.Commit, "test", "blog-3f2a1bc", "Castle", "Roll back to tazzo/tazlab.net:blog-3f2a1bc", Rollback, full, digestOf("3f2a1bc")},
		{hand, "blog-3f2a1bc", "test", "Some Person", "Try something", "", "", ""},
		{first.Commit, "blog-0000000", "blog-3f2a1bc", "Castle", "Publish tazzo/tazlab.net:blog-3f2a1bc", Publish, full, digestOf("3f2a1bc")},
		{start, "", "blog-0000000", "Some Person", "Start", "", "", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("entry %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}

	t.Run("at most the limit", func(t *testing.T) {
		entries, err := History(t.Context(), r.repository, manifestPath, blog, 2)
		if err != nil || len(entries) != 2 || entries[0].Commit != last.Commit {
			t.Errorf("entries = %+v, %v", entries, err)
		}
	})
	t.Run("a manifest that is not there is an error", func(t *testing.T) {
		if _, err := History(t.Context(), r.repository, "hugo-blog.yaml", blog, 0); !errors.Is(err, ErrPathNotFound) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("an image that is not in it is an error", func(t *testing.T) {
		_, err := History(t.Context(), r.repository, manifestPath, manifest.Selector{Image: "tazzo/other"}, 0)
		var notFound *manifest.NotFoundError
		if !errors.As(err, &notFound) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestAManifestThatDidNotParseInBetweenIsNoEndOfHistory(t *testing.T) {
	t.Parallel()
	r := newRemote(t, nil)
	r.commit(t, "Break it", map[string]string{manifestPath: "a: [\n"})
	r.commit(t, "Mend it", map[string]string{manifestPath: deployment})
	r.commit(t, "Remove it", nil, manifestPath)
	r.commit(t, "Bring it back", map[string]string{manifestPath: deployment})
	entries, err := History(t.Context(), r.repository, manifestPath, blog, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Subject+": "+e.Old.Tag+" > "+e.New.Tag)
	}
	want := []string{
		"Bring it back:  > blog-0000000", "Remove it: blog-0000000 > ",
		"Mend it:  > blog-0000000", "Break it: blog-0000000 > ", "Start:  > blog-0000000",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnEarlierImageIsFoundByItsSourceCommit(t *testing.T) {
	t.Parallel()
	entries := Entries{
		{New: manifest.Reference{Tag: "blog-abc1234"}, SourceCommit: "abc1234" + strings.Repeat("5", 33), Digest: "sha256:new"},
		{New: manifest.Reference{Tag: "blog-abcf000"}, SourceCommit: "abcf000" + strings.Repeat("6", 33)},
		{New: manifest.Reference{Tag: "blog-1234567"}}, // by hand
		{New: manifest.Reference{Tag: "test"}},
		{},
		{New: manifest.Reference{Tag: "blog-9999999-r3"}, SourceCommit: "9999999" + strings.Repeat("5", 33), Digest: "sha256:three"},
		{New: manifest.Reference{Tag: "blog-8888888-r2"}}, // by hand
		{New: manifest.Reference{Tag: "blog-9999999-r2"}, SourceCommit: "9999999" + strings.Repeat("5", 33), Digest: "sha256:two"},
		{New: manifest.Reference{Tag: "blog-9999999"}, SourceCommit: "9999999" + strings.Repeat("5", 33), Digest: "sha256:one"},
		{New: manifest.Reference{Tag: "blog-abc1234"}, SourceCommit: "abc1234" + strings.Repeat("5", 33), Digest: "sha256:old"},
	}
	for name, story := range map[string]struct {
		commit, tag, digest string
		fails               error
		says                string
	}{
		"by seven digits":            {commit: "abc1234", tag: "blog-abc1234", digest: "sha256:new"},
		"by all digits":              {commit: "abc1234" + strings.Repeat("5", 33), tag: "blog-abc1234", digest: "sha256:new"},
		"by four digits":             {commit: "abc1", tag: "blog-abc1234", digest: "sha256:new"},
		"in capitals":                {commit: "ABCF000", tag: "blog-abcf000"},
		"by the tag of a hand-made":  {commit: "1234567" + strings.Repeat("8", 33), tag: "blog-1234567"},
		"the newest rebuild":         {commit: "9999", tag: "blog-9999999-r3", digest: "sha256:three"},
		"one rebuild":                {commit: "9999999-r2", tag: "blog-9999999-r2", digest: "sha256:two"},
		"the first image":            {commit: "9999999-R1", tag: "blog-9999999", digest: "sha256:one"},
		"by its tag":                 {commit: "blog-9999999", tag: "blog-9999999", digest: "sha256:one"},
		"by a tag made by hand":      {commit: "test", tag: "test"},
		"a rebuild made by hand":     {commit: "8888888", tag: "blog-8888888-r2"},
		"not a rebuild that is none": {commit: "9999999-r4", fails: ErrNotPublished, says: "no image of commit 9999999-r4; known are"},
		"not by a tag of nobody":     {commit: "blog-7777777", fails: ErrRequest, says: "or one of abc1234 (blog-abc1234"},
		"not when it is unknown":     {commit: "7777777", fails: ErrNotPublished, says: "known are abc1234 (blog-abc1234"},
		"not when it differs later":  {commit: "abc12349", fails: ErrNotPublished},
		"not when it is too short":   {commit: "abc", fails: ErrRequest},
		"not when it is no commit":   {commit: "main", fails: ErrRequest},
		"not by an empty string":     {commit: "", fails: ErrRequest},
		"not by a word of the tag":   {commit: "blog", fails: ErrRequest},
		"not by digits in the midst": {commit: "bc1234", fails: ErrNotPublished},
	} {
		t.Run(name, func(t *testing.T) {
			entry, err := entries.Find(story.commit)
			if !errors.Is(err, story.fails) || err != nil && !strings.Contains(err.Error(), story.says) {
				t.Fatalf("error = %v, want %v with %q", err, story.fails, story.says)
			}
			if entry.New.Tag != story.tag || entry.Digest != story.digest {
				t.Errorf("entry = %+v", entry)
			}
		})
	}
	t.Run("not when two begin so", func(t *testing.T) {
		two := Entries{
			{New: manifest.Reference{Tag: "blog-abcd111"}, SourceCommit: "abcd111" + strings.Repeat("1", 33)},
			{New: manifest.Reference{Tag: "blog-abcd222"}, SourceCommit: "abcd222" + strings.Repeat("1", 33)},
		}
		if _, err := two.Find("abcd"); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "give more digits") {
			t.Errorf("error = %v", err)
		}
	})
}
