// Package canary searches what a program has printed and left behind for secrets that a test has planted, in whatever form they are written and
// in whatever they are packed.
package canary

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Search looks for some secrets.
type Search struct {
	// forms by their first bytes: a cluster's secrets have some ten thousand, and a log that tells all has megabytes.
	forms map[[start]byte][]form
	begin [1 << 16]bool // what forms begin with, by two bytes
	short []form        // those that have no such start
	// Leaks are the places that a secret was found in, by the secret's name.
	Leaks map[string][]string
	// Places is how many texts were searched, those within archives too.
	Places int
}

// form is one text by which a secret is recognized.
type form struct{ secret, text string }

const start = 8

// New searches for secrets, given by their names.
func New(secrets map[string]string) *Search {
	s := &Search{forms: map[[start]byte][]form{}, Leaks: map[string][]string{}}
	for name, secret := range secrets {
		for _, text := range Forms(secret) {
			switch {
			case text == "":
			case len(text) < start:
				s.short = append(s.short, form{name, text})
			default:
				first := [start]byte([]byte(text))
				s.forms[first] = append(s.forms[first], form{name, text})
				s.begin[int(first[0])<<8|int(first[1])] = true
			}
		}
	}
	return s
}

// in are the names of the secrets that a text holds.
func (s *Search) in(data []byte) map[string]bool {
	found := map[string]bool{}
	for _, form := range s.short {
		if bytes.Contains(data, []byte(form.text)) {
			found[form.secret] = true
		}
	}
	for i := 0; i+start <= len(data); i++ {
		if !s.begin[int(data[i])<<8|int(data[i+1])] {
			continue
		}
		for _, form := range s.forms[[start]byte(data[i:i+start])] {
			if bytes.HasPrefix(data[i:], []byte(form.text)) {
				found[form.secret] = true
			}
		}
	}
	return found
}

// least is the shortest line of a key that is looked for by itself.
const least = 24

// pieces are the parts of a secret that are found by themselves: of a private key, also one that is PEM in base64, each of its lines.
func pieces(secret string) []string {
	list := []string{strings.TrimSpace(secret)}
	text := secret
	if decoded, err := base64.StdEncoding.DecodeString(secret); err == nil && bytes.HasPrefix(decoded, []byte("-----BEGIN")) {
		text = string(decoded)
	}
	if strings.Contains(text, "-----BEGIN") {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= least && !strings.HasPrefix(line, "-----") {
				list = append(list, line)
			}
		}
	}
	return list
}

// Forms are the texts that a secret is recognized by: itself, in JSON (also twice) and Go's and YAML's quotes, in URLs, in hexadecimal, and in base64
// of either alphabet wherever it begins in the encoded text, which may be an encoding of it again.
func Forms(secret string) []string {
	var forms []string
	for _, piece := range pieces(secret) {
		quoted := inJSON(piece)
		goQuoted := strconv.Quote(piece)
		goQuoted = goQuoted[1 : len(goQuoted)-1]
		forms = append(forms, piece, strings.ReplaceAll(piece, "'", "''"))
		for _, once := range []string{quoted, plainJSON(piece), goQuoted} {
			forms = append(forms, once, inJSON(once), plainJSON(once))
		}
		for _, escaped := range []string{url.QueryEscape(piece), url.PathEscape(piece)} {
			forms = append(forms, escaped, lowerPercent(escaped))
		}
		for _, hexed := range []string{hex.EncodeToString([]byte(piece)), strings.ToUpper(hex.EncodeToString([]byte(piece)))} {
			forms = append(forms, append(inBase64(hexed), hexed)...)
		}
		for _, encoded := range inBase64(piece) {
			forms = append(forms, append(inBase64(encoded), encoded)...)
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// inBase64 is what of a text is the same in base64 whatever stands around it, for each of the three places that it can begin at.
func inBase64(text string) []string {
	var list []string
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		// A character of base64 has bits of two bytes: those at both ends may be a neighbour's.
		cut := []int{0, 2, 3}[before]
		end := len(encoded)
		if (before+len(text))%3 != 0 {
			end--
		}
		if end-cut < 12 {
			continue // too short to be told from ordinary text
		}
		encoded = encoded[cut:end]
		list = append(list, encoded, strings.NewReplacer("+", "-", "/", "_").Replace(encoded))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func inJSON(text string) string {
	data, _ := json.Marshal(text) // a text always can be
	return string(data[1 : len(data)-1])
}

// plainJSON leaves <, > and & as they are.
func plainJSON(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // into memory
	return strings.TrimSuffix(strings.TrimPrefix(out.String(), `"`), "\"\n")
}

// lowerPercent writes %2F as %2f.
func lowerPercent(text string) string {
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(text[i+1:i+3]))
		}
	}
	return string(out)
}

// Limits of what is opened: a file beyond them holds an image or a program, and an archive in an archive in an archive is none of ours.
const (
	largest = 256 << 20
	deepest = 4
)

// Text searches a text, and what is packed in it: gzip, zip and tar, also within each other.
func (s *Search) Text(place string, data []byte) { s.text(place, data, deepest) }

func (s *Search) text(place string, data []byte, depth int) {
	s.Places++
	for name := range s.in(data) {
		s.Leaks[name] = append(s.Leaks[name], place)
	}
	if depth == 0 {
		return
	}
	for _, unpack := range []func([]byte, func(string, io.Reader)){ungzip, unzip, untar} {
		unpack(data, func(name string, reader io.Reader) {
			// What is cut or broken is searched as far as it goes.
			inner, _ := io.ReadAll(io.LimitReader(reader, largest))
			s.text(place+"!"+name, inner, depth-1)
		})
	}
}

func ungzip(data []byte, found func(string, io.Reader)) {
	// A log may have something in front of it, and several may be in one file.
	for rest := data; ; {
		at := bytes.Index(rest, []byte{0x1f, 0x8b, 0x08})
		if at < 0 {
			return
		}
		if reader, err := gzip.NewReader(bytes.NewReader(rest[at:])); err == nil {
			found("gzip", reader)
		}
		rest = rest[at+3:]
	}
}

func unzip(data []byte, found func(string, io.Reader)) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	for _, file := range archive.File {
		if reader, err := file.Open(); err == nil {
			found(file.Name, reader)
			_ = reader.Close()
		}
		found(file.Name+" (comment)", strings.NewReader(file.Comment+"\n"+file.Name))
	}
}

func untar(data []byte, found func(string, io.Reader)) {
	const magic = 257 // where a header says "ustar"
	if len(data) < 512 || string(data[magic:magic+5]) != "ustar" {
		return
	}
	archive := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := archive.Next()
		if err != nil {
			return
		}
		found(header.Name, archive)
	}
}

// Folder searches every file below a folder, but those that skip names by their paths below it: the secrets' own sources.
func (s *Search) Folder(folder string, skip ...string) error {
	return filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what is still running removes its files
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil || slices.Contains(skip, relative) {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Size() > largest {
			return nil
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		s.Text(name, data)
		return err
	})
}
