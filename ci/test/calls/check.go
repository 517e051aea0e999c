package calls

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknown stands for what only a shell could tell, such as a variable's value.
const unknown = "\x00"

// elided are words that stand for what a document leaves out, as … does.
func elided(word string) bool {
	return word == "…" || word == "..." || strings.HasPrefix(word, unknown)
}

// Check is what is wrong with a command: nothing, where it is none that calls a function.
func (m *Module) Check(found Found) []string {
	c := &checker{Module: m, quoted: found.Quoted}
	rest, calls := c.untilCall(found.Words[1:])
	if calls {
		c.follow(rest)
	}
	return c.mistakes
}

type checker struct {
	*Module
	quoted   bool
	mistakes []string
}

func (c *checker) mistake(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf(format, args...))
}

// untilCall reads the dagger command's own flags.
func (c *checker) untilCall(words []string) (rest []string, calls bool) {
	for len(words) > 0 {
		flag, _, has := strings.Cut(words[0], "=")
		takes, known := own[flag]
		switch {
		case words[0] == "call":
			return words[1:], true
		case !known:
			return nil, false
		case takes && !has && len(words) > 1:
			words = words[1:]
		}
		words = words[1:]
	}
	return nil, false
}

// follow reads function after function, each with its flags.
func (c *checker) follow(words []string) {
	if len(words) > 0 && words[0] == kebab(mainType) {
		words = words[1:] // the module is a toolchain of the repository
	}
	at, function, called := mainType, c.New, "dagger call"
	given, all := map[string]bool{}, true
	end := func() {
		if c.quoted && len(given) == 0 {
			return
		}
		for _, name := range function.required() {
			if all && !given[name] {
				c.mistake("%s needs --%s", called, name)
			}
		}
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case elided(word):
			all = false
		case word == "--help" || word == "-h":
			return
		case strings.HasPrefix(word, "-"):
			flag, value, has := strings.Cut(word, "=")
			if takes, known := own[flag]; known {
				if takes && !has && len(words) > 0 {
					words = words[1:]
				}
				continue
			}
			name := strings.TrimPrefix(flag, "--")
			argument, known := function.Arguments[name]
			if !known {
				c.mistake("%s has no %s: it has %s", called, flag, flags(function))
				return // whether a value follows is not known
			}
			given[name] = true
			if argument.Type == "bool" {
				continue
			}
			if !has {
				if len(words) == 0 || strings.HasPrefix(words[0], "--") {
					c.mistake("%s %s has no value", called, flag)
					continue
				}
				value, words = words[0], words[1:]
			}
			if values := c.Enums[argument.Type]; values != nil && !elided(value) && !slices.Contains(values, value) {
				c.mistake("%s %s cannot be %q: it is one of %s", called, flag, value, strings.Join(values, ", "))
			}
		default:
			next, known := c.Types[at][word]
			if !known {
				c.mistake("%s: there is no %q behind it", called, word)
				return
			}
			end()
			at, function, called = next.Returns, next, word
			given, all = map[string]bool{}, true
		}
	}
	end()
	if called == "dagger call" && all {
		c.mistake("dagger call names no function")
	}
}

func flags(f Function) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.Arguments)) {
		names = append(names, "--"+name)
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}
