package gitopsrepo

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	gitopstemplate "tazlab.net/castle/gitops-template"
)

// functions are what a file of the template may call; folder is the file's.
func (m *model) functions(folder string) template.FuncMap {
	return template.FuncMap{
		"quote": quote,
		// has says whether a part is there.
		"has": func(name string) (bool, error) {
			on, known := m.parts[name]
			if !known {
				return false, fmt.Errorf("%s is no part", name)
			}
			return on, nil
		},
		// kustomization lists those of the resources that are there.
		"kustomization": func(resources ...string) (string, error) {
			var there []string
			for _, resource := range resources {
				is, err := m.there(path.Join(folder, resource))
				if err != nil {
					return "", err
				}
				if is {
					there = append(there, resource)
				}
			}
			return m.partial("kustomization.yaml", there)
		},
		// holds says whether a folder has a file, beside those that only list others.
		"holds": func(folder string) bool { return m.holds(folder) },
		// dependsOn waits for those of the Kustomizations that are there. It begins with a line break, since it may be nothing.
		"dependsOn": func(names ...string) (string, error) {
			var there []string
			for _, name := range names {
				is, err := m.there("clusters/NAME/" + name + ".yaml")
				if err != nil {
					return "", err
				}
				if is {
					there = append(there, "\n    - name: "+name)
				}
			}
			if len(there) == 0 {
				return "", nil
			}
			return "\n  dependsOn:" + strings.Join(there, ""), nil
		},
		"source": func(name string) (string, error) { return m.ofChart("source.yaml", chart{Name: name}) },
		// release installs a chart into a namespace, as a service account of Flux's namespace.
		"release": func(release, name, namespace, account string) (string, error) {
			return m.ofChart("release.yaml", chart{Name: name, Release: release, Namespace: namespace, Account: account})
		},
		// installer is the service account that installs charts into a namespace, and has its name.
		"installer": func(namespace string) (string, error) { return m.partial("installer.yaml", namespace) },
		// solver lets the solver of a certificate's challenge be reached in a namespace.
		"solver":     func(namespace string) (string, error) { return m.partial("solver.yaml", namespace) },
		"image":      func(name string) (string, error) { return m.pins.image(name, m.Talos) },
		"repository": func(name string) string { return m.pins.Images[name].Repository },
		"artifact": func(name string) (string, error) {
			c, err := m.pins.chart(name, "")
			return strings.TrimPrefix(c.URL, ociScheme), err
		},
		"externalSecret": func(name string) (string, error) {
			for _, s := range m.Secrets() {
				if s.Name == name {
					return m.partial("external-secret.yaml", s)
				}
			}
			return "", fmt.Errorf("no part has a secret %s", name)
		},
	}
}

// there says whether the repository has a file or folder of the template. One that the template has not is a mistake of it.
func (m *model) there(name string) (bool, error) {
	if _, err := fs.Stat(gitopstemplate.Files, path.Join(repositoryFolder, name)); err != nil {
		return false, err
	}
	return m.parts.has(name, !m.SOPS), nil
}

// holds says whether the repository has a file of the template's folder, beside those that only list others.
func (m *model) holds(folder string) bool {
	found := false
	_ = fs.WalkDir(gitopstemplate.Files, path.Join(repositoryFolder, folder), func(name string, entry fs.DirEntry, err error) error {
		below := strings.TrimPrefix(name, repositoryFolder+"/")
		found = found || err == nil && !entry.IsDir() && entry.Name() != "kustomization.yaml" && m.parts.has(below, !m.SOPS)
		return nil
	})
	return found
}

func (m *model) ofChart(partial string, of chart) (string, error) {
	c, err := m.pins.chart(of.Name, m.mirror)
	if err != nil {
		return "", err
	}
	c.Release, c.Namespace, c.Account = of.Release, of.Namespace, of.Account
	return m.partial(partial, c)
}

// partial is the text of one of the shared pieces.
func (m *model) partial(name string, data any) (string, error) {
	t, err := m.parse(name, partialsFolder+"/"+name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return strings.TrimRight(b.String(), "\n"), err
}

// Secrets are those that the user has to give, for the parts that are there.
func (m *model) Secrets() []secret {
	var list []secret
	for _, s := range secrets {
		if !m.parts[s.Part] {
			continue
		}
		if s.Part == PullSecret {
			s.Registry = registryOf(m.BlogRepository)
		}
		list = append(list, s)
	}
	return list
}

// Parts are those that are there, as the README tells of them.
func (m *model) Parts() []struct{ Name, What string } {
	var list []struct{ Name, What string }
	for _, p := range parts {
		if m.parts[p.name] {
			list = append(list, struct{ Name, What string }{p.name, p.what})
		}
	}
	return list
}
