package gitopsrepo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// axes are what requests differ in, each with its choices. A choice is what it does to a request.
func axes(withInfisical, withSOPS string) []axis {
	a := []axis{
		{"secrets", []choice{{"infisical", func(r *Request) { r.Folder = withInfisical }}, {"sops", func(r *Request) { r.Folder = withSOPS }}}},
		{"mirror", []choice{{"none", nil}, {"https", func(r *Request) { r.ChartMirror = "https://charts.example.org/all/" }}, {"oci", func(r *Request) { r.ChartMirror = "oci://registry.example.org/charts" }}}},
		{"issuer", []choice{{"staging", nil}, {"production", func(r *Request) { r.Issuer = Production }}}},
		{"image", []choice{{"unpublished", nil}, {"published", func(r *Request) { r.BlogImage = "localhost:5000/me/blog:blog-1a2b3c4" }}, {"hub", func(r *Request) { r.BlogImage = "docker.io/me/blog" }}}},
		{"port", []choice{{"80", nil}, {"8080", func(r *Request) { r.BlogPort = 8080 }}}},
		{"git", []choice{{"by host", nil}, {"gitlab", func(r *Request) { r.GitProvider = "gitlab" }}, {"generic", func(r *Request) { r.GitProvider = "generic" }}}},
		{"store", []choice{{"of the states", nil}, {"AWS", func(r *Request) { r.BackupBucket, r.BackupRegion = "backups", "eu-central-1" }}}},
	}
	usual, asked := PartNames()
	for _, name := range usual {
		a = append(a, axis{name, []choice{{"with", nil}, {"without", func(r *Request) { r.Without = append(r.Without, name) }}}})
	}
	for _, name := range asked {
		a = append(a, axis{name, []choice{{"without", nil}, {"with", func(r *Request) { r.With = append(r.With, name) }}}})
	}
	return a
}

type axis struct {
	name    string
	choices []choice
}

type choice struct {
	name string
	do   func(*Request)
}

// pairwise are requests in which every two choices of different axes meet at least once, those aside that cannot.
func pairwise(t *testing.T, axes []axis, valid func([]int) bool) [][]int {
	t.Helper()
	type pair struct{ a, i, b, j int }
	open := map[pair]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() []int {
		for {
			row := make([]int, len(axes))
			for a := range axes {
				row[a] = random.IntN(len(axes[a].choices))
			}
			if valid(row) {
				return row
			}
		}
	}
	pairsOf := func(row []int, do func(pair)) {
		for a := range row {
			for b := a + 1; b < len(row); b++ {
				do(pair{a, row[a], b, row[b]})
			}
		}
	}
	for range 20000 { // what meets in no valid row cannot meet
		pairsOf(draw(), func(p pair) { open[p] = true })
	}
	var rows [][]int
	for len(open) > 0 {
		var best []int
		most := 0
		for range 200 {
			row := draw()
			n := 0
			pairsOf(row, func(p pair) {
				if open[p] {
					n++
				}
			})
			if n > most {
				best, most = row, n
			}
		}
		if best == nil {
			continue
		}
		pairsOf(best, func(p pair) { delete(open, p) })
		rows = append(rows, best)
	}
	return rows
}

// everyPair calls a test with each request of a pairwise set, and with all parts at once.
func everyPair(t *testing.T, test func(t *testing.T, request Request)) {
	withInfisical, withSOPS := clusterFolder(t), clusterFolder(t, withoutInfisical()...)
	all := axes(withInfisical, withSOPS)
	index := func(name string) int { return slices.IndexFunc(all, func(a axis) bool { return a.name == name }) }
	traefik, certManager := index(Traefik), index(CertManager)
	rows := pairwise(t, all, func(row []int) bool { return row[traefik] == 0 || row[certManager] == 1 })
	if len(rows) < 9 || len(rows) > 40 {
		t.Errorf("%d requests: is this still pairwise?", len(rows))
	}
	everything := make([]int, len(all))
	everything[index(ActionsRunners)] = 1
	for i, row := range append(rows, make([]int, len(all)), everything) {
		request := full(withInfisical)
		var name string
		for a, chosen := range row {
			if do := all[a].choices[chosen].do; do != nil {
				do(&request)
			}
			name += fmt.Sprintf(" %s=%s", all[a].name, all[a].choices[chosen].name)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the request:" + name)
				}
			})
			test(t, request)
		})
	}
}
