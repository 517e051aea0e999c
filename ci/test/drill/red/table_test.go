package main

import (
	"strings"
	"testing"
)

func TestATableKeepsWhatOtherRunsHaveShown(t *testing.T) {
	spoilOf := func(story, without string) spoil {
		return spoil{Story: story, Without: without, Test: test{Package: "publish", Name: "Test" + story}}
	}
	all := []spoil{spoilOf("A", "one"), spoilOf("A", "two"), spoilOf("B", "three"), spoilOf("C", "never tried")}
	const before = "2026-11-24, 2 cores: **2 of 3 were red**.\n\n| story | taken out | test | outcome |\n|---|---|---|---|\n" +
		"| `A` | one | `publish` TestOld | red |\n| `B` | three | `publish` TestOld | NOT NOTICED |\n| `gone` | four | `publish` TestOld | red |\n"
	got := markdown(merged(before, all, []shown{{spoil: all[2], outcome: wasRed}, {spoil: all[1], outcome: wasGreen}}))
	want := "**2 of 3 were red**.\n\n| story | taken out | test | outcome |\n|---|---|---|---|\n" +
		"| `A` | one | `publish` TestOld | red |\n| `A` | two | `publish` TestA | NOT NOTICED |\n| `B` | three | `publish` TestB | red |\n"
	if got != want {
		t.Errorf("\n%s", strings.ReplaceAll(got, "\n", "\n\t"))
	}
}
