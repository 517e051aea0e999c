package newcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/secrets"
)

// Files of a cluster's folder, beside config.File.
const (
	secretsFile   = "secrets.sops.yaml"
	pkiFile       = "talos.secrets.sops.yaml" // the cluster's PKI, where no Infisical keeps it
	authorityFile = "pve-root-ca.pem"
)

// ending is that of a template's name.
const ending = ".tmpl"

// ignored is what must never get into the repository's history, however it came into the folder.
const ignored = "kubeconfig\ntalosconfig\n*.agekey\n*.tfstate*\n"

// page is what the templates are given.
type page struct {
	*config.Cluster
	Folder string // in the repository
	// Templates are the VMs that the nodes are cloned from; Host is where each stands.
	Templates []struct {
		Host string
		ID   int
	}
	Taken  []string         // what is as in other clusters
	InFile []secrets.Wanted // secrets of the SOPS file
	Needed []string         // a line each, of what else somebody has to provide
}

// write renders the templates into a folder that is not there yet.
func write(templates, to, folder string, c *config.Cluster, taken []string) error {
	forAll, err := filepath.Glob(filepath.Join(templates, "*"+ending))
	if err != nil {
		return err
	}
	own, err := filepath.Glob(filepath.Join(templates, templatesOf[c.Platform], "*"+ending))
	if err != nil {
		return err
	}
	if len(forAll) == 0 || len(own) == 0 {
		return fmt.Errorf("there are no templates for the platform %s in %s", c.Platform, templates)
	}
	made := map[string][]byte{".gitignore": []byte(ignored)}
	for _, file := range append(forAll, own...) {
		text, err := render(file, newPage(c, folder, taken))
		if err != nil {
			return err
		}
		made[strings.TrimSuffix(filepath.Base(file), ending)] = text
	}
	if err := sound(c.Name, made[config.File]); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for name, text := range made {
		if err := renameio.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func newPage(c *config.Cluster, folder string, taken []string) page {
	p := page{Cluster: c, Folder: folder, Taken: taken}
	for _, node := range c.Nodes {
		if c.Platform == config.PlatformAWS || !c.MakesMachines() {
			break
		}
		clone := c.Proxmox.CloneOf(node)
		template := struct {
			Host string
			ID   int
		}{clone.Host, clone.Template}
		if !slices.Contains(p.Templates, template) {
			p.Templates = append(p.Templates, template)
		}
	}
	var elsewhere []string
	for _, wanted := range secrets.WantedBy(c) {
		switch {
		case wanted.Source == secrets.SourceSOPS:
			p.InFile = append(p.InFile, wanted)
		case !wanted.Optional:
			elsewhere = append(elsewhere, fmt.Sprintf("`%s` (%s)", wanted.Name, wanted.What))
		}
	}
	if i := c.Secrets.Infisical.Complete(); i.Has() {
		p.Needed = append(p.Needed,
			fmt.Sprintf("In Infisical, project %s, environment %s, path %s: %s.", i.Slug, i.Environment, i.FluxPath, strings.Join(elsewhere, ", ")),
			fmt.Sprintf("Three machine identities with universal auth there: castle's own, which may read, create and edit secrets in %s and below it, "+
				"and create folders there; one that may read %s and nothing else; and one that may read %s and nothing else. The last two go into the cluster.",
				i.Path, i.FluxPath, i.WorkloadsPath))
	}
	p.Needed = append(p.Needed, fmt.Sprintf("The folder %s in %s, branch %s, which Flux applies.", c.GitOps.Path, c.GitOps.URL, c.GitOps.Branch))
	if s := c.State; s.Backend == config.StateS3 {
		p.Needed = append(p.Needed, fmt.Sprintf("The bucket %s for the states.", s.S3.Bucket))
	}
	return p
}

func render(file string, p page) ([]byte, error) {
	parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").Funcs(template.FuncMap{"list": list, "capital": capital, "count": count}).ParseFiles(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, p)
	return text.Bytes(), err
}

// list writes the elements of a list one after the other.
func list(elements any) string {
	var texts []string
	for i := range reflect.ValueOf(elements).Len() {
		texts = append(texts, fmt.Sprint(reflect.ValueOf(elements).Index(i)))
	}
	return strings.Join(texts, ", ")
}

// capital is a text that begins a sentence.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// count is a number of things.
func count(elements any, thing string) string {
	n := reflect.ValueOf(elements).Len()
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// sound holds a description to the rules that every other is held to, but that the certificate's file is there, which a person copies.
// What is wrong then was given by flags.
func sound(name string, text []byte) error {
	scratch, err := os.MkdirTemp("", "newcluster-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	folder := filepath.Join(scratch, name)
	unsigned := bytes.Replace(text, []byte("\n  ca: "+authorityFile), []byte("\n  insecure: true"), 1)
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, config.File), unsigned, 0o600)); err != nil {
		return err
	}
	_, err = config.Load(folder)
	if err == nil {
		return nil
	}
	return fmt.Errorf("no such cluster can be described, and nothing was written:\n%s", strings.ReplaceAll(err.Error(), scratch+string(filepath.Separator), ""))
}
