package main

import (
	"regexp"
	"strings"
)

// Words begin where a capital follows a small letter, and with the last capital of several: "TheVMIsGone" has four.
var (
	afterCapitals = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	afterSmall    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// sentence is the name of a test as it is read: "TestTheVMIsGone" is "the VM is gone".
func sentence(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Fuzz")
	list := strings.Fields(afterSmall.ReplaceAllString(afterCapitals.ReplaceAllString(name, "$1 $2"), "$1 $2"))
	for i, word := range list {
		if len(word) == 1 || word != strings.ToUpper(word) {
			list[i] = strings.ToLower(word)
		}
	}
	return strings.Join(list, " ")
}
