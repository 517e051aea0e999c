package debian

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// sources gives the one-line apt sources for suite, from the mirrors that the host itself uses: a machine behind a
// proxy or with a mirror of its own can often reach nothing else. Only the release's own suites with their component
// main count; repositories of third parties do not. None at all means that the host names no mirror of Debian's, and
// mmdebstrap takes those that it knows.
func (h host) sources(suite string) []string {
	ids, codename := h.release()
	if !slices.Contains(ids[:min(1, len(ids))], "debian") || codename == "" {
		return nil
	}
	var list []string
	add := func(uris, suites, components []string) {
		if !slices.Contains(components, "main") {
			return
		}
		for _, s := range suites {
			part := strings.TrimPrefix(s, codename)
			if part == s || !slices.Contains([]string{"", "-updates", "-security"}, part) {
				continue
			}
			for _, uri := range uris {
				if line := "deb " + uri + " " + suite + part + " main"; !slices.Contains(list, line) {
					list = append(list, line)
				}
			}
		}
	}
	for _, file := range h.aptFiles() {
		data, err := fs.ReadFile(h.files, file)
		if err != nil {
			continue
		}
		if path.Ext(file) == ".sources" {
			eachStanza(string(data), add)
		} else {
			eachLine(string(data), add)
		}
	}
	if !slices.ContainsFunc(list, func(line string) bool { return strings.HasSuffix(line, " "+suite+" main") }) {
		return nil
	}
	return list
}

func (h host) aptFiles() []string {
	files := []string{"etc/apt/sources.list"}
	for _, pattern := range []string{"etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"} {
		found, err := fs.Glob(h.files, pattern)
		if err == nil {
			files = append(files, found...)
		}
	}
	return files
}

// eachStanza reads the deb822 format of sources.list(5).
func eachStanza(text string, add func(uris, suites, components []string)) {
	fields := map[string][]string{}
	last := ""
	flush := func() {
		enabled := strings.ToLower(strings.Join(fields["enabled"], ""))
		if slices.Contains(fields["types"], "deb") && enabled != "no" && enabled != "false" {
			add(fields["uris"], fields["suites"], fields["components"])
		}
		fields, last = map[string][]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[last] = append(fields[last], strings.Fields(line)...)
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(name)
			fields[last] = strings.Fields(value)
		}
	}
	flush()
}

// eachLine reads the one-line format: deb [options] uri suite component…
func eachLine(text string, add func(uris, suites, components []string)) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, isDeb := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !isDeb {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if words := strings.Fields(rest); len(words) >= 3 {
			add(words[:1], words[1:2], words[2:])
		}
	}
}
