package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
)

// file is one SOPS file, decrypted.
type file struct {
	name   string // with the cluster's folder
	values map[string]string
	absent bool
	err    error // why it cannot be read
}

type files []file

// openFiles decrypts all SOPS files of a cluster. Of several, one that is not there is told of together with what is missing, since that may
// be what it was to hold.
func openFiles(c *config.Cluster, in Inputs) files {
	redact.Add(identity.FindAllString(in.AgeKey, -1)...)
	var opened files
	for _, name := range c.Secrets.SOPS {
		name = filepath.Join(in.Folder, name)
		if _, err := os.Stat(name); len(c.Secrets.SOPS) > 1 && errors.Is(err, fs.ErrNotExist) {
			opened = append(opened, file{name: name, absent: true})
			continue
		}
		values, err := decrypt(name, in.AgeKey)
		opened = append(opened, file{name: name, values: values, err: err})
	}
	return opened
}

// FromFiles are the secrets of the SOPS files alone, complete or not: for what has to work where Infisical does not.
func FromFiles(c *config.Cluster, in Inputs) (*Values, error) {
	opened := openFiles(c, in)
	if err := opened.err(); err != nil {
		return nil, err
	}
	all, _ := opened.all()
	values := NewValues()
	values.Add(all, SourceSOPS)
	return values, nil
}

// err has a line for each file that cannot be read.
func (f files) err() error {
	var failures []error
	for _, file := range f {
		failures = append(failures, file.err)
	}
	return errors.Join(failures...)
}

// of is the file that a secret stands in, empty where it is in none.
func (f files) of(name string) string {
	for _, file := range f {
		if _, has := file.values[name]; has {
			return file.name
		}
	}
	return ""
}

// all are the secrets of all files, and a problem for each name that stands in two of them and for each that is absent.
func (f files) all() (map[string]string, []Problem) {
	all, first := map[string]string{}, map[string]string{}
	var problems []Problem
	for _, file := range f {
		if file.absent {
			problems = append(problems, Problem{Name: file.name, Source: SourceSOPS, Text: file.name + " is named in secrets.sops and does not exist",
				Fix: "make the file, or take its name out of secrets.sops"})
		}
		for _, name := range slices.Sorted(maps.Keys(file.values)) {
			if other, twice := first[name]; twice {
				problems = append(problems, Problem{Name: name, Source: SourceSOPS, Text: fmt.Sprintf("%s stands in both %s and %s: remove it from one", name, other, file.name),
					Fix: fmt.Sprintf("remove it with \"sops edit %s\"", file.name)})
				continue
			}
			first[name], all[name] = file.name, file.values[name]
		}
	}
	return all, problems
}

// where says in which files a secret that is needed is looked for, and how it gets into one.
func (f files) where(n need) (at, fix string) {
	var names []string
	first := ""
	for _, file := range f {
		names = append(names, file.name)
		if _, has := file.values[n.name]; has || first == "" {
			first = file.name
		}
	}
	at = strings.Join(names, " or ")
	if n.make != "" {
		return at, n.make
	}
	return at, fmt.Sprintf("set it with \"sops edit %s\"", first)
}

// Names are those of the secrets in a SOPS file, and whom it is encrypted to.
func Names(file, ageKey string) (names, recipients []string, err error) {
	redact.Add(identity.FindAllString(ageKey, -1)...)
	values, err := decrypt(file, ageKey)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	recipients, err = recipientsOf(file, data)
	return slices.Sorted(maps.Keys(values)), recipients, err
}
