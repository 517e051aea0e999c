package manifest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkBump changes a manifest as they are in a small GitOps repository: a Service, a Deployment with its init
// container and volumes, an Ingress; alone, and behind a hundred other resources in one file.
func BenchmarkBump(b *testing.B) {
	src, err := os.ReadFile("testdata/hugo-blog.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var long strings.Builder
	for i := range 100 {
		long.WriteString(strings.ReplaceAll(string(src), "tazzo/tazlab.net", fmt.Sprintf("tazzo/app-%d", i)))
		long.WriteString("---\n")
	}
	long.Write(src)
	oneLine := `{"spec":{"containers":[` + strings.Repeat(`{"image":"tazzo/other:v1"},`, 10_000) + `{"image":"tazzo/tazlab.net:v1"}]}}`
	for name, manifest := range map[string][]byte{"one": src, "hundred": []byte(long.String()), "one line": []byte(oneLine)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(manifest)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Bump(manifest, Selector{Image: "tazzo/tazlab.net"}, "blog-1a2b3c4", ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
