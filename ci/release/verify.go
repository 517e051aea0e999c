package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/base/sbom"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/imagesign"
)

// VerifyOptions say what is verified.
type VerifyOptions struct {
	Folder  string // the files, as they were downloaded
	Version string // that they are to be; "": any
	Key     *cosign.Verifier
	// Registry says how to reach the image's; FilesOnly leaves the image out.
	Registry  imagepush.Access
	FilesOnly bool
}

// Check is one thing that has to hold.
type Check struct {
	Name    string `json:"name"`
	Seen    string `json:"seen,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Verified is what was seen. Its JSON form is part of the interface: fields are added, never renamed.
type Verified struct {
	Version string  `json:"version,omitempty"`
	Commit  string  `json:"commit,omitempty"`
	Builder string  `json:"builder,omitempty"`
	Key     string  `json:"key"`
	Checks  []Check `json:"checks"`
}

func (v *Verified) add(name, seen string, problem error) {
	check := Check{Name: name, Seen: seen}
	if problem != nil {
		check.Seen, check.Problem = "", strings.ReplaceAll(problem.Error(), "\n", "; ")
	}
	v.Checks = append(v.Checks, check)
}

// Failed says whether anything is missing or wrong.
func (v Verified) Failed() bool {
	return slices.ContainsFunc(v.Checks, func(c Check) bool { return c.Problem != "" })
}

// Verify looks at all of a release; what is missing or wrong is in the result. An error is what kept it from looking.
func Verify(ctx context.Context, o VerifyOptions) (Verified, error) {
	seen := Verified{Key: o.Key.Fingerprint()}
	text, err := os.ReadFile(filepath.Join(o.Folder, checksumsFile))
	if err != nil {
		return seen, fmt.Errorf("the release's files: %w", err)
	}
	sums, err := parseChecksums(text)
	if err != nil {
		return seen, err
	}
	seen.add("signature of "+checksumsFile, "key "+seen.Key, o.signature(text))
	seen.add("files", fmt.Sprintf("%d, each with its SHA-256", len(sums)), o.files(sums))
	programs := slices.DeleteFunc(slices.Sorted(maps.Keys(sums)), func(name string) bool { return !isProgram(name) })
	parts, err := o.lists(sums, programs)
	seen.add("SBOMs", fmt.Sprintf("of %d programs, %d parts", len(programs), parts), err)
	pushed, err := o.image(sums)
	seen.add(imageFile, pushed.Reference(), err)
	said, err := o.provenance(sums, programs, pushed)
	seen.Version, seen.Commit, seen.Builder = said.version, said.commit, said.builder
	seen.add("provenance", fmt.Sprintf("%s of commit %s, built by %s", said.version, short(said.commit), said.builder), err)
	if o.FilesOnly || pushed.Digest == "" {
		return seen, nil
	}
	return seen, o.registry(ctx, &seen, pushed, said)
}

// isProgram tells the programs from what is said of them.
func isProgram(name string) bool {
	return strings.HasPrefix(name, "castle_") && !strings.HasSuffix(name, sbomSuffix)
}

func (o VerifyOptions) signature(text []byte) error {
	made, err := os.ReadFile(filepath.Join(o.Folder, signatureFile))
	if err != nil {
		return fmt.Errorf("%s is missing", signatureFile)
	}
	return o.Key.Verify(text, strings.TrimSpace(string(made)))
}

// files compares each file with its sum. One that has none is nobody's.
func (o VerifyOptions) files(sums checksums) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum, err := sumOf(filepath.Join(o.Folder, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			problems = append(problems, fmt.Errorf("%s is missing", name))
		case err != nil:
			problems = append(problems, err)
		case sum != sums[name]:
			problems = append(problems, fmt.Errorf("%s has the SHA-256 %s, not %s", name, sum, sums[name]))
		}
	}
	entries, err := os.ReadDir(o.Folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, known := sums[entry.Name()]; !known && entry.Name() != checksumsFile && entry.Name() != signatureFile {
			problems = append(problems, fmt.Errorf("%s is in no list: it is not of this release", entry.Name()))
		}
	}
	return errors.Join(problems...)
}

// read reads a file that the checksums name, and only if it is that one.
func (o VerifyOptions) read(sums checksums, name string) ([]byte, error) {
	path := filepath.Join(o.Folder, name)
	if sums[name] == "" {
		return nil, fmt.Errorf("%s does not name %s", checksumsFile, name)
	}
	if sum, err := sumOf(path); err != nil || sum != sums[name] {
		return nil, fmt.Errorf("%s is missing or another one", name)
	}
	return os.ReadFile(path)
}

// lists makes sure that each program has an SBOM which describes it.
func (o VerifyOptions) lists(sums checksums, programs []string) (parts int, err error) {
	if len(programs) == 0 {
		return 0, fmt.Errorf("%s names no program", checksumsFile)
	}
	var problems []error
	for _, name := range programs {
		text, err := o.read(sums, name+sbomSuffix)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		listed, described, err := sbom.Read(text)
		if err == nil && described["SHA256"] != sums[name] {
			err = errors.New("it describes another program")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name+sbomSuffix, err))
		}
		parts += listed
	}
	return parts, errors.Join(problems...)
}

func (o VerifyOptions) image(sums checksums) (pushed Pushed, err error) {
	text, err := o.read(sums, imageFile)
	if err != nil {
		return pushed, err
	}
	if json.Unmarshal(text, &pushed) != nil || pushed.Digest == "" || pushed.Repository == "" {
		return Pushed{}, fmt.Errorf("%s names no image", imageFile)
	}
	return pushed, nil
}

// provenance makes sure that the statement is about every program and the image, and of that version.
func (o VerifyOptions) provenance(sums checksums, programs []string, pushed Pushed) (built, error) {
	text, err := o.read(sums, provenanceFile)
	if err != nil {
		return built{}, err
	}
	statement, err := o.Key.Open(text)
	if err != nil {
		return built{}, err
	}
	said, err := readStatement(statement)
	if err != nil {
		return said, err
	}
	var problems []error
	for _, name := range programs {
		if !statement.About("sha256:" + sums[name]) {
			problems = append(problems, fmt.Errorf("it says nothing of %s", name))
		}
	}
	if !statement.About(pushed.Digest) {
		problems = append(problems, errors.New("it says nothing of the image"))
	}
	return said, errors.Join(append(problems, o.versions(said, pushed))...)
}

func readStatement(statement cosign.Statement) (built, error) {
	if statement.PredicateType != cosign.PredicateSLSA {
		return built{}, fmt.Errorf("it is of the kind %s", statement.PredicateType)
	}
	return readPredicate(statement.Predicate)
}

// versions compares what was asked for, what the provenance says, and the image's tag.
func (o VerifyOptions) versions(said built, pushed Pushed) error {
	if o.Version != "" && said.version != o.Version {
		return fmt.Errorf("it is of the version %s, not %s", said.version, o.Version)
	}
	if pushed.Tag != said.version {
		return fmt.Errorf("it is of the version %s, and the image is tagged %s", said.version, pushed.Tag)
	}
	return nil
}

// registry looks at the image and what stands beside it.
func (o VerifyOptions) registry(ctx context.Context, seen *Verified, pushed Pushed, said built) error {
	found, err := imagepush.Lookup(ctx, o.Registry, pushed.Repository+":"+pushed.Tag)
	if missing := (*imagepush.NotFoundError)(nil); errors.As(err, &missing) {
		seen.add("image", "", err)
		return nil
	}
	if err != nil {
		return err
	}
	err = nil
	if found != pushed.Digest {
		err = fmt.Errorf("the registry has %s under %s, and %s says %s: the tag was moved", found, pushed.Tag, imageFile, pushed.Digest)
	}
	seen.add("image", found, err)

	image := imagesign.Image{Registry: o.Registry, Repository: pushed.Repository, Digest: pushed.Digest}
	if err := seen.judge("image's signature", "key "+seen.Key, imagesign.Verify(ctx, image, o.Key)); err != nil {
		return err
	}
	statement, err := imagesign.Attestation(ctx, image, o.Key, cosign.PredicateSPDX)
	parts := 0
	if err == nil {
		if parts, _, err = sbom.Read(statement.Predicate); err != nil {
			err = &imagesign.UnverifiedError{What: "SBOM", Problems: []string{err.Error()}}
		}
	}
	if err := seen.judge("image's SBOM", fmt.Sprintf("%d parts", parts), err); err != nil {
		return err
	}
	statement, err = imagesign.Attestation(ctx, image, o.Key, cosign.PredicateSLSA)
	if err == nil {
		var of built
		if of, err = readStatement(statement); err == nil && (of.commit != said.commit || of.version != said.version) {
			err = fmt.Errorf("it is of %s at %s, and the files are of %s at %s", of.version, short(of.commit), said.version, short(said.commit))
		}
		if err != nil {
			err = &imagesign.UnverifiedError{What: "provenance", Problems: []string{err.Error()}}
		}
	}
	return seen.judge("image's provenance", "commit "+short(said.commit), err)
}

// judge takes down what came of a check; what kept it from being made stays an error.
func (v *Verified) judge(name, seen string, err error) error {
	if unverified := (*imagesign.UnverifiedError)(nil); err != nil && !errors.As(err, &unverified) {
		return fmt.Errorf("the %s: %w", name, err)
	}
	v.add(name, seen, err)
	return nil
}

func (v Verified) headline() string {
	if v.Failed() {
		return "Not verified"
	}
	return "Verified: castle " + v.Version
}

func (c Check) row() (mark, says string) {
	if c.Problem != "" {
		return "failed", c.Problem
	}
	return "ok", c.Seen
}

// Text is the result for a person.
func (v Verified) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", v.headline())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, check := range v.Checks {
		mark, says := check.row()
		fmt.Fprintf(table, "  %s\t%s\t%s\n", mark, check.Name, says)
	}
	table.Flush()
	return b.String()
}

// Markdown is the result for GitHub's job summary.
func (v Verified) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| | | |\n|---|---|---|\n", v.headline())
	for _, check := range v.Checks {
		mark, says := check.row()
		fmt.Fprintf(&b, "| %s | %s | %s |\n", mark, check.Name, rendering.Code(says))
	}
	return b.String()
}
