package siteheaders

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/renameio/v2"
)

// memory is what the files of a site's last build left behind, in a file of a cache. Most files of a build are those of the
// last one, and reading them takes most of the time that fitting takes. What is remembered is decided by the address, the
// file's name, its content and this program, and by nothing else of the site.
type memory struct {
	file    string // empty for none
	program string // a hash of it
	last    record

	mu    sync.Mutex
	now   record
	place map[need]int // in now.Needs
}

// record is the file. Most documents need the same, so that a need is written once.
type record struct {
	Needs     []need                `json:"needs"`
	Documents map[string]remembered `json:"documents"`
}

// remembered is what one document left behind.
type remembered struct {
	Needs []int    `json:"needs,omitempty"` // places in the record
	Opens []string `json:"opens,omitempty"`
}

// openMemory opens the memory of the site at an address. A file that is not there or damaged is an empty one.
func openMemory(cacheDir, address string) (*memory, error) {
	if cacheDir == "" {
		return &memory{}, nil
	}
	program, err := programSum()
	if err != nil {
		return nil, err
	}
	m := &memory{
		file:    filepath.Join(cacheDir, "headers", sumOf(address)+".json"),
		program: program,
		now:     record{Documents: map[string]remembered{}},
		place:   map[need]int{},
	}
	data, err := os.ReadFile(m.file)
	if err != nil || json.Unmarshal(data, &m.last) != nil {
		m.last = record{}
	}
	return m, nil
}

// programSum is a hash of this program: another one may find something else in the same file.
func programSum() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// document fills in what a file leaves behind: from memory, else by reading it.
func (m *memory) document(d *document, content []byte, read func(*document, []byte)) {
	if m.file == "" {
		read(d, content)
		return
	}
	key := sumOf(fmt.Sprintf("%s %q %x", m.program, d.file, sha256.Sum256(content)))
	if !m.recall(d, key) {
		read(d, content)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Documents[key] = remembered{m.places(d.needs), slices.Collect(maps.Keys(d.opens))}
}

// recall fills in what is remembered under a key.
func (m *memory) recall(d *document, key string) bool {
	found, known := m.last.Documents[key]
	for _, at := range found.Needs {
		if at < 0 || at >= len(m.last.Needs) {
			clear(d.needs)
			return false
		}
		d.needs[m.last.Needs[at]] = true
	}
	for _, file := range found.Opens {
		d.opens[file] = true
	}
	return known
}

// places are where the needs stand in the new record.
func (m *memory) places(needs map[need]bool) []int {
	var places []int
	for wanted := range needs {
		at, known := m.place[wanted]
		if !known {
			at = len(m.now.Needs)
			m.place[wanted] = at
			m.now.Needs = append(m.now.Needs, wanted)
		}
		places = append(places, at)
	}
	return places
}

// save remembers the files of this build in place of the last one's. Builds at the same time do not meet: the file appears
// by renaming.
func (m *memory) save() error {
	if m.file == "" {
		return nil
	}
	data, err := json.Marshal(m.now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(m.file, data, 0o644)
}

// MarshalJSON writes the three parts of a need as a list.
func (n need) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]string{n.directive, n.source, n.why})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *need) UnmarshalJSON(data []byte) error {
	var parts [3]string
	err := json.Unmarshal(data, &parts)
	n.directive, n.source, n.why = parts[0], parts[1], parts[2]
	return err
}
