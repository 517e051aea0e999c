package kube

import (
	"strings"
	"testing"
)

func TestAnObjectIsNamedWithItsNamespace(t *testing.T) {
	if object, err := ParseObject("blog/hugo-blog"); err != nil || object != (Object{"blog", "hugo-blog"}) || object.String() != "blog/hugo-blog" {
		t.Errorf("%v %v", object, err)
	}
	for _, text := range []string{"", "blog", "/blog", "blog/", "a/b/c"} {
		if _, err := ParseObject(text); err == nil || !strings.Contains(err.Error(), "want namespace/name") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
