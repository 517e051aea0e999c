package strictyaml

import "regexp"

// Fact is what is known about a field beyond its type and its comment. A schema is made of it, too.
type Fact struct {
	Hint     string // what to write, where the name alone does not tell
	Default  any    // the value of a field that is left out
	Optional bool   // may be left out without having a default
	Instead  string // the word that a section may be written as: all that it holds is left out then
	Single   bool   // a list of one item may be written as that item

	// An editor checks these too, by the schema.

	Words    []string       // all values that a text can have
	Form     *regexp.Regexp // what a text must match
	What     string         // what that is, in words, such as "a URL without credentials"
	Least    int            // the smallest number, 0 for no limit
	Most     int            // the largest number, 0 for no limit
	Nonempty bool           // the list must hold something
	Distinct bool           // the list must hold nothing twice
}

// Facts are those of a document's fields by path; "[]" stands for any item of a list or a map: "nodes[].role".
type Facts map[string]Fact

var index = regexp.MustCompile(`\[[^\]]*\]`)

// Of finds what is known of the field at a path such as "nodes[2].role".
func (f Facts) Of(path string) Fact { return f[index.ReplaceAllString(path, "[]")] }

// MayMiss says whether a field can be left out.
func (f Facts) MayMiss(path string) bool {
	fact := f.Of(path)
	return fact.Optional || fact.Default != nil
}
