package charts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// downloadsFile lists what was downloaded: beside the charts what they were made of, in the folder of a cluster's states what they were
// made of when it was first used.
const downloadsFile = "downloads.json"

// Download is something that was downloaded.
type Download struct {
	URL    string `json:"url"`
	Digest string `json:"digest"`           // "sha256:…"
	Pinned bool   `json:"pinned,omitempty"` // the list of charts has this very digest
}

// proven downloads something and compares it with its digest, where that is pinned.
func proven(ctx context.Context, address, pinned string) ([]byte, Download, error) {
	data, err := get(ctx, address, maxChart)
	if err != nil {
		return nil, Download{}, err
	}
	download := Download{URL: address, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Pinned: pinned != ""}
	if pinned != "" && download.Digest != pinned {
		return nil, Download{}, fmt.Errorf("%s has the digest %s, and %s pins %s: it was changed after that was written down, or on its way here. "+
			"Find out why; what is to be installed is pinned by dagger call pin-charts", address, download.Digest, ChartsFile, pinned)
	}
	return data, download, nil
}

// CheckDownloads compares what the charts in a folder were made of with what the first use of the same addresses noted in the folder
// states, and notes what is new. It fails where something has changed since: nobody wrote down what it should be, so the first use
// decides; where it is pinned, the pin does. Charts that were made from files alone have nothing to compare.
func CheckDownloads(folder, states string) error {
	downloads, err := readDownloads(filepath.Join(folder, downloadsFile))
	if err != nil || len(downloads) == 0 {
		return err
	}
	file := filepath.Join(states, downloadsFile)
	noted, err := readDownloads(file)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, download := range noted {
		known[download.URL] = download.Digest
	}
	var changed error
	for _, download := range downloads {
		if before := known[download.URL]; before != "" && before != download.Digest && !download.Pinned {
			changed = errors.Join(changed, fmt.Errorf("%s has the digest %s, and had %s when this cluster first used it: it was changed since, or on its way here. "+
				"Find out why; dagger call pin-charts writes the digest of what is to be installed into %s, which then decides", download.URL, download.Digest, before, ChartsFile))
		}
		known[download.URL] = download.Digest
	}
	if changed != nil {
		return changed
	}
	noted = nil
	for _, address := range slices.Sorted(maps.Keys(known)) {
		noted = append(noted, Download{URL: address, Digest: known[address]})
	}
	return writeDownloads(file, noted)
}

// Unproven are the downloads that the charts in a folder were made of and that nothing says what they should be: neither the list of charts
// nor what was noted in the folder states.
func Unproven(folder, states string) ([]string, error) {
	downloads, err := readDownloads(filepath.Join(folder, downloadsFile))
	if err != nil {
		return nil, err
	}
	noted, err := readDownloads(filepath.Join(states, downloadsFile))
	if err != nil {
		return nil, err
	}
	var unproven []string
	for _, download := range downloads {
		same := func(note Download) bool { return note.URL == download.URL && note.Digest == download.Digest }
		if !download.Pinned && !slices.ContainsFunc(noted, same) {
			unproven = append(unproven, download.URL)
		}
	}
	return unproven, nil
}

func readDownloads(file string) ([]Download, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Download
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

func writeDownloads(file string, list []Download) error {
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(file, append(data, '\n'), 0o644)
}
