package gitopscheck

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tazlab.net/castle/ci/base/findings"
	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
	"tazlab.net/castle/ci/gitops/gitopscheck/schemas"
)

// Options say what to check.
type Options struct {
	// Dir is the repository's folder.
	Dir string
	// Path is the folder in it whose Kustomizations are the ones to begin with. Empty: all that nothing else applies.
	Path string
	// CRDs are folders with further definitions, which go before those that castle carries.
	CRDs []string
	// Ignore leaves findings out: "rule", or "rule:pattern" for those whose cause or file the pattern matches as a whole.
	Ignore []string
	// Baseline are findings that are known: only what it does not hold is reported.
	Baseline findings.Baseline
	// Lockdown says that Flux runs with its multi-tenancy lockdown, which the repository may not show.
	Lockdown bool
	// Cluster is asked what it would say to the objects. Nil: none is.
	Cluster Cluster
}

// Check reads the repository and returns all its findings at once. An error means that it could not be read, or that the options
// make no sense; findings are no error.
func Check(ctx context.Context, options Options) (Report, error) {
	ignored, err := findings.ParseIgnore(options.Ignore, Names())
	if err != nil {
		return Report{}, err
	}
	files, err := manifests.Read(options.Dir)
	if err != nil {
		return Report{}, fmt.Errorf("read the repository: %w", err)
	}
	if options.Path != "" && !files.IsFolder(options.Path) {
		return Report{}, fmt.Errorf("there is no folder %s in the repository: --path takes one as it is named there, such as clusters/production", options.Path)
	}
	known, err := schemas.Carried()
	if err != nil {
		return Report{}, err
	}
	repository, err := fluxtree.Read(ctx, files, options.Path)
	if err != nil {
		return Report{}, err
	}
	c := &check{ctx: ctx, repository: repository, schemas: known, cluster: options.Cluster, lockdownAsked: options.Lockdown, notes: map[string]bool{}}
	if err := c.learn(options.CRDs); err != nil {
		return Report{}, err
	}
	for _, rule := range rules {
		if rule.find != nil {
			rule.find(c)
		}
	}
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	return c.report(ignored, options.Baseline), nil
}

// check is the work on one repository.
type check struct {
	ctx        context.Context
	repository *fluxtree.Repository
	schemas    *schemas.Set
	cluster    Cluster

	lockdownAsked bool

	found     []findings.Finding
	notes     map[string]bool
	unchecked map[string]int // kinds without a schema, with the number of their objects
}

// learn takes the definitions of the repository and of further folders.
func (c *check) learn(folders []string) error {
	for _, folder := range folders {
		files, err := manifests.Read(folder)
		if err != nil {
			return fmt.Errorf("read the definitions: %w", err)
		}
		c.schemas.AddAll(files, folder)
	}
	c.schemas.AddAll(c.repository.Files, "the repository")
	return nil
}

// at takes a finding down. The cause is what findings that are mended together have in common.
func (c *check) at(file string, line int, rule, cause, format string, arguments ...any) {
	finding := findings.Finding{File: file, Line: line, Rule: rule, Cause: cause, Message: fmt.Sprintf(format, arguments...)}
	if !slices.Contains(c.found, finding) { // a base is the same in every cluster
		c.found = append(c.found, finding)
	}
}

// on takes down what is wrong with a field of an object.
func (c *check) on(object *manifests.Object, path []string, rule, cause, format string, arguments ...any) {
	file, line := object.At(path...)
	c.at(file, line, rule, cause, format, arguments...)
}

// note takes down what was not checked.
func (c *check) note(format string, arguments ...any) {
	c.notes[fmt.Sprintf(format, arguments...)] = true
}

// part is a set of objects that are together somewhere: those of a Kustomization, or those of an overlay that nothing applies.
type part struct {
	by      *fluxtree.Kustomization // nil for an overlay
	objects []*manifests.Object
}

// parts are all of them. Kustomizations with which clusters begin are parts of their own: nothing applies them.
func (c *check) parts() []part {
	var all []part
	for _, cluster := range c.repository.Clusters {
		applied := map[manifests.ID]bool{}
		for _, kustomization := range cluster.Kustomizations {
			all = append(all, part{kustomization, kustomization.Objects})
			for _, object := range kustomization.Objects {
				applied[object.ID()] = true
			}
		}
		for _, kustomization := range cluster.Kustomizations {
			if !applied[kustomization.ID()] {
				all = append(all, part{objects: []*manifests.Object{kustomization.Object}})
			}
		}
	}
	if len(all) == 0 { // Flux is told elsewhere to apply them; beside Kustomizations they lie in an archive
		for _, overlay := range c.repository.Overlays {
			all = append(all, part{objects: overlay.Objects})
		}
	}
	return all
}

// broken says that part of what a cluster gets is missing because it could not be built, so that nothing can be said to be missing.
func broken(cluster *fluxtree.Cluster) bool {
	return slices.ContainsFunc(cluster.Kustomizations, func(k *fluxtree.Kustomization) bool {
		return k.Err != nil || len(k.Remote) > 0 || k.Folder != "" && !k.Built
	})
}

func (c *check) report(ignored findings.IgnoreList, baseline findings.Baseline) Report {
	report := Report{Clusters: len(c.repository.Clusters), Files: len(c.repository.Files.ByName), Overlays: len(c.repository.Overlays), Notes: []string{}}
	for _, cluster := range c.repository.Clusters {
		for _, kustomization := range cluster.Kustomizations {
			report.Kustomizations++
			report.Objects += len(kustomization.Objects)
		}
	}
	for note := range c.notes {
		report.Notes = append(report.Notes, note)
	}
	for kind, objects := range c.unchecked {
		report.Unchecked = append(report.Unchecked, Unchecked{kind, objects})
	}
	slices.Sort(report.Notes)
	slices.SortFunc(report.Unchecked, func(a, b Unchecked) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Kind, b.Kind))
	})
	report.Take(c.found, severity, ignored, baseline)
	return report
}
