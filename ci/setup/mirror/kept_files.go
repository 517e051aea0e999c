package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// keptFiles are what stands in a built tool's folder beside its programs.
type keptFiles struct {
	folder   string
	programs map[string]bool // by their names in folder
	sum      string          // digest of the files' names and contents
}

// filesOf finds the folder of a tool by its programs, and reads what is there beside them.
func filesOf(programs map[string]string) (keptFiles, error) {
	k := keptFiles{programs: map[string]bool{}}
	for name, file := range programs {
		k.folder, k.programs[name] = filepath.Dir(file), true
	}
	if k.folder == "" {
		return k, errors.New("it has no programs")
	}
	sum, found := sha256.New(), false
	err := filepath.WalkDir(k.folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(k.folder, name)
		if err != nil {
			return err
		}
		if at, _ := k.place(filepath.ToSlash(below)); at == "" {
			return nil
		}
		digest, err := fileSum(name)
		fmt.Fprintf(sum, "%s %s\n", filepath.ToSlash(below), digest)
		found = true
		return err
	})
	if err == nil && !found {
		err = errors.New("nothing is kept beside its programs")
	}
	k.sum = hex.EncodeToString(sum.Sum(nil))
	return k, err
}

// place is where a file of the folder goes, as layerWriter.tree asks.
func (k keptFiles) place(file string) (string, int64) {
	if k.programs[file] {
		return "", 0
	}
	return file, 0o644
}
