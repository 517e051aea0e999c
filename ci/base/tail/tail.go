// Package tail reads a file line by line while it is being written.
package tail

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Every is how often to look for new lines. The file may be on a volume that reports no changes.
const Every = 100 * time.Millisecond

// File is a file of lines, which need not be there yet.
type File struct {
	name    string
	file    *os.File
	pending []byte // of a line that is not complete yet
}

// New reads the file of this name from its start.
func New(name string) *File { return &File{name: name} }

// Lines gives the whole lines that were written since the last time, without their ends.
func (f *File) Lines() ([][]byte, error) {
	if f.file == nil {
		file, err := os.Open(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	data, err := io.ReadAll(f.file)
	if err != nil {
		return nil, err
	}
	f.pending = append(f.pending, data...)
	var lines [][]byte
	for {
		line, rest, complete := bytes.Cut(f.pending, []byte("\n"))
		if !complete {
			return lines, nil
		}
		lines, f.pending = append(lines, line), rest
	}
}

// Close closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
