//go:build linux

package process

import (
	"os"
	"path/filepath"
	"sync"
)

// logLimit is the size at which a log file becomes the previous one; together they take at most twice as much.
const logLimit = 4 << 20

// Log is a file that programs print to. A full one is kept as name.1 until the next is full.
type Log struct {
	name string

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog appends to a file; its folder is created.
func OpenLog(name string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	log := &Log{name: name}
	return log, log.open()
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write never fails: a program must not end because its log cannot be kept.
func (l *Log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && l.size >= logLimit {
		l.file.Close()
		l.file = nil
		if os.Rename(l.name, l.name+".1") == nil {
			_ = l.open()
		}
	}
	if l.file != nil {
		n, _ := l.file.Write(data)
		l.size += int64(n)
	}
	return len(data), nil
}

// Close closes the file; later writes are dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
