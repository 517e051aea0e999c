package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// checksums are names and their SHA-256, as sha256sum writes and checks them.
type checksums map[string]string

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
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

// sumFolder sums the files of a folder, but for those named.
func sumFolder(folder string, but ...string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var text strings.Builder
next:
	for _, entry := range entries { // sorted by name
		for _, name := range but {
			if entry.Name() == name {
				continue next
			}
		}
		sum, err := sumOf(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, entry.Name())
	}
	return text.String(), nil
}

func parseChecksums(text []byte) (checksums, error) {
	sums := checksums{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if raw, err := hex.DecodeString(sum); !found || err != nil || len(raw) != sha256.Size || name == "" || filepath.Base(name) != name {
			return nil, fmt.Errorf("%s has a line that is no checksum of a file beside it: %q", checksumsFile, lines.Text())
		}
		if _, twice := sums[name]; twice {
			return nil, fmt.Errorf("%s names %s twice", checksumsFile, name)
		}
		sums[name] = sum
	}
	return sums, nil
}
