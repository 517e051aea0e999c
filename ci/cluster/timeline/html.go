package timeline

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"time"
)

//go:embed page.html.tmpl
var pageTemplate string

// HTML is the time line as one page without any other resource: a chart of layers and gates, the critical path, and the
// same as a table. It is readable at the width of a phone, in the dark and by a screen reader.
func (t Timeline) HTML() ([]byte, error) {
	page, err := template.New("page").Funcs(template.FuncMap{"clock": clock}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("read the page's template: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, newPage(t)); err != nil {
		return nil, fmt.Errorf("write the time line as HTML: %w", err)
	}
	return b.Bytes(), nil
}

// page is the time line with its places on the axis.
type page struct {
	Timeline
	Ticks []tick
	Rows  []row
	Chain []Link
	Rest  Seconds
}

type tick struct {
	At    float64
	Label string
	Last  bool // too near to the axis's end for a label to its right
}

type row struct {
	Layer
	bar
	Gates []gateRow
}

type gateRow struct {
	Gate
	bar
}

// bar is where a span stands on the axis, in percent.
type bar struct{ Left, Width float64 }

func newPage(t Timeline) page {
	p := page{Timeline: t, Chain: t.Critical, Rest: t.unaccounted()}
	longest := t.Total
	for _, layer := range t.Layers {
		longest = max(longest, layer.End())
	}
	end := float64(max(longest, Seconds(time.Second))) * 1.03
	at := func(s Seconds) float64 { return 100 * float64(s) / end }
	place := func(s Span) bar { return bar{at(s.Start), at(s.Took)} }
	step := stepOf(time.Duration(end))
	for s := time.Duration(0); float64(s) < end; s += step {
		p.Ticks = append(p.Ticks, tick{At: at(Seconds(s)), Label: clock(Seconds(s)), Last: at(Seconds(s)) > 93})
	}
	for _, layer := range t.Layers {
		r := row{Layer: layer, bar: place(layer.Span)}
		for _, gate := range layer.Gates {
			r.Gates = append(r.Gates, gateRow{gate, place(gate.Span)})
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// stepOf is the distance of ticks that gives at most six of them, so that their labels fit a phone.
func stepOf(axis time.Duration) time.Duration {
	steps := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	}
	for _, step := range steps {
		if axis/step < 6 {
			return step
		}
	}
	return axis / 5
}
