package proxmox

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parameters are held to schemas as PVE::JSONSchema holds them: check_prop, check_type, check_object and parse_property_string of
// pve-common 8.3.1, src/PVE/JSONSchema.pm, with their wording. Of a mistake in a format the text ends with a line feed, as there.

// kind is a property's type.
type kind int

const (
	text kind = iota
	integer
	decimal
	boolean
)

func (k kind) String() string { return [...]string{"string", "integer", "number", "boolean"}[k] }

// prop is what a parameter, or a part of one, may be.
type prop struct {
	kind        kind
	required    bool
	least, most *float64
	enum        []string
	pattern     *regexp.Regexp // of all of the value
	longest     int            // in characters; 0: any length
	format      format
	list        bool   // the format is that of each item, and a client may repeat the parameter
	needs       string // a property that has to be there beside this one
	bare        bool   // in a property string: the value may stand there without the name
	alias       string // in a property string: another name of that property
	aliasKey    string // and the property whose value the name is then
	root        bool   // for root@pam alone, which no token is
	unplayed    bool   // known to Proxmox and not played here: it is refused where it would change anything
}

// schema is a call's parameters, or the parts of a property string.
type schema map[string]prop

// format says what is wrong with a value, "" where nothing is; path is what it is called in further mistakes.
type format func(path, value string) (mistake string)

const (
	notInSchema = "property is not defined in schema and the schema does not allow additional properties"
	isMissing   = "property is missing and it is not optional"
)

var (
	integerPattern = regexp.MustCompile(`^[+-]?\d+$`)
	numberPattern  = regexp.MustCompile(`^[+-]?(\d+\.\d+|\d+\.|\.\d+|\d+)([eE][+-]?\d+)?$`)
)

// at is a bound.
func at(n float64) *float64 { return &n }

// whole is a pattern of all of a value.
func whole(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

// words is an enumeration.
func words(list string) []string { return strings.Fields(list) }

// with is a schema and some properties more.
func (s schema) with(more ...schema) schema {
	all := maps.Clone(s)
	for _, some := range more {
		maps.Copy(all, some)
	}
	return all
}

// mistakes are what is wrong with a call's parameters, by their names.
func (s schema) mistakes(params url.Values) map[string]string {
	found := map[string]string{}
	for name, p := range s {
		values := params[name]
		if len(values) > 1 && p.list {
			values = []string{strings.Join(values, ",")} // normalize_legacy_param_formats of src/PVE/RESTHandler.pm
		}
		switch {
		case len(values) > 1:
			found[name] = fmt.Sprintf("type check ('%s') failed - got ARRAY", p.kind)
		case len(values) == 1:
			if mistake := p.mistake(name, values[0]); mistake != "" {
				found[name] = mistake
			}
			if p.root && values[0] != "0" && found[name] == "" {
				found[name] = "Only root may use this option."
			}
			if p.needs != "" && !params.Has(p.needs) {
				found[p.needs] = fmt.Sprintf("missing property - '%s' requires this property", name)
			}
		case p.required:
			found[name] = isMissing
		}
	}
	for name := range params {
		if _, known := s[name]; !known {
			found[name] = notInSchema
		}
	}
	return found
}

// unplayedIn names the first parameter that is not played here. Whatever says "no" changes nothing.
func (s schema) unplayedIn(params url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name].unplayed && params.Has(name) && params.Get(name) != "0" {
			return name
		}
	}
	return ""
}

// mistake is what is wrong with a value.
func (p prop) mistake(path, value string) string {
	if wrong := p.kind.mistake(value); wrong != "" {
		return wrong
	}
	if wrong := p.formatMistake(path, value); wrong != "" {
		return "invalid format - " + wrong
	}
	if p.pattern != nil && !p.pattern.MatchString(value) {
		return "value does not match the regex pattern"
	}
	if p.longest > 0 && utf8.RuneCountInString(value) > p.longest {
		return fmt.Sprintf("value may only be %d characters long", p.longest)
	}
	if numberPattern.MatchString(value) {
		n, _ := strconv.ParseFloat(value, 64)
		switch {
		case p.most != nil && n > *p.most:
			return fmt.Sprintf("value must have a maximum value of %.0f", *p.most)
		case p.least != nil && n < *p.least:
			return fmt.Sprintf("value must have a minimum value of %.0f", *p.least)
		}
	}
	if p.enum != nil && !slices.Contains(p.enum, value) {
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.enum, ", "))
	}
	return ""
}

// mistake is check_type. A boolean is 1 or 0: other notations are those of property strings alone.
func (k kind) mistake(value string) string {
	fits := true
	switch k {
	case integer:
		fits = integerPattern.MatchString(value)
	case decimal:
		fits = numberPattern.MatchString(value)
	case boolean:
		fits = value == "0" || value == "1"
	}
	if !fits {
		return fmt.Sprintf("type check ('%s') failed - got '%s'", k, value)
	}
	return ""
}

func (p prop) formatMistake(path, value string) string {
	if p.format == nil {
		return ""
	}
	if !p.list {
		return p.format(path, value)
	}
	for _, item := range splitTags(value) {
		if wrong := p.format(path, item); wrong != "" {
			return wrong
		}
	}
	return ""
}

// propertyString is a format of its own: "key=value,…". Further rules look at what was read.
func propertyString(parts schema, rules ...func(map[string]string) string) format {
	return func(path, value string) string {
		read, wrong := parts.read(value)
		if wrong != "" {
			return wrong + "\n"
		}
		found := map[string]string{}
		for name, p := range parts {
			item, there := read[name]
			switch {
			case there:
				if mistake := p.mistake(path+"."+name, item); mistake != "" {
					found[path+"."+name] = mistake
				}
				if _, has := read[p.needs]; p.needs != "" && !has {
					found[path+"."+p.needs] = fmt.Sprintf("missing property - '%s.%s' requires this property", path, name)
				}
			case p.required:
				found[path+"."+name] = isMissing
			}
		}
		if len(found) > 0 {
			var lines strings.Builder
			for _, name := range slices.Sorted(maps.Keys(found)) {
				fmt.Fprintf(&lines, "%s: %s\n", name, found[name])
			}
			return "format error\n" + lines.String()
		}
		for _, rule := range rules {
			if wrong := rule(read); wrong != "" {
				return wrong + "\n"
			}
		}
		return ""
	}
}

// read takes a property string apart.
func (s schema) read(value string) (read map[string]string, mistake string) {
	read = map[string]string{}
	bare := ""
	for _, part := range strings.Split(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, item, pair := strings.Cut(part, "=")
		switch {
		case pair && (key == "" || item == ""):
			return nil, "missing key in comma-separated list property"
		case pair:
			if _, twice := read[key]; twice {
				return nil, "duplicate key in comma-separated list property: " + key
			}
			p, known := s[key]
			if p.alias != "" {
				if p.aliasKey != "" {
					if _, twice := read[p.aliasKey]; twice {
						return nil, fmt.Sprintf("key alias '%s' is already defined", p.aliasKey)
					}
					read[p.aliasKey] = key
				}
				key = p.alias
				p, known = s[key]
			}
			if !known {
				return nil, "invalid key in comma-separated list property: " + key
			}
			if p.kind == boolean {
				item = notation(item)
			}
			read[key] = item
		case bare != "":
			return nil, "duplicate key in comma-separated list property: " + bare
		default:
			for name, p := range s {
				if p.bare {
					bare = name
				}
			}
			if bare == "" {
				return nil, "value without key, but schema does not define a default key"
			}
			if read[bare] != "" {
				return nil, "duplicate key in comma-separated list property: " + bare
			}
			read[bare] = part
		}
	}
	return read, ""
}

// notation is a boolean of a property string as 1 or 0, and what is none as it is.
func notation(value string) string {
	switch strings.ToLower(value) {
	case "1", "on", "yes", "true":
		return "1"
	case "0", "off", "no", "false":
		return "0"
	}
	return value
}
