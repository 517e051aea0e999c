package timeline

import (
	"fmt"
	"strings"
	"time"
)

// Title is what was run, with what became of it: "create sandbox: 6 m 51 s".
func (t Timeline) Title() string {
	name := strings.TrimSpace(orText(t.Command, "run") + " " + t.Cluster)
	switch t.Result {
	case ResultFailed:
		return fmt.Sprintf("%s: failed after %s", name, t.Total)
	case ResultInterrupted:
		return fmt.Sprintf("%s: unfinished after %s", name, t.Total)
	default:
		return fmt.Sprintf("%s: %s", name, t.Total)
	}
}

// Wait is a gate and its layer.
type Wait struct {
	Layer, Gate string
	Took        Seconds
}

// LongestWait is the gate that took longest, nil where there is none.
func (t Timeline) LongestWait() *Wait {
	var longest *Wait
	for _, layer := range t.Layers {
		for _, gate := range layer.Gates {
			if gate.Kind == KindGate && (longest == nil || gate.Took > longest.Took) {
				longest = &Wait{layer.Name, gate.Name, gate.Took}
			}
		}
	}
	return longest
}

// Done counts the layers that got through.
func (t Timeline) Done() int {
	n := 0
	for _, layer := range t.Layers {
		if layer.Result == ResultOK || layer.Result == ResultUnchanged {
			n++
		}
	}
	return n
}

// Where says in which layer, and at which gate, it failed.
func (f Failure) Where() string {
	switch {
	case f.Layer == "":
		return "The run did not end"
	case f.Gate == "":
		return "Layer " + f.Layer + " failed"
	default:
		return "Layer " + f.Layer + " failed at the gate " + f.Gate
	}
}

const daggerCall = "dagger call "

// NextWords is what Next says before its command.
func (f Failure) NextWords() string {
	words, _, _ := strings.Cut(f.Next, daggerCall)
	if words = strings.TrimRight(words, " :\n"); words == "" {
		return "Go on with"
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// NextCommand is the command in Next, "" where it has none.
func (f Failure) NextCommand() string {
	if at := strings.Index(f.Next, daggerCall); at >= 0 {
		return strings.TrimSpace(f.Next[at:])
	}
	return ""
}

// unaccounted is how much of the run's time is in no link of the critical path: before, between and after layers.
func (t Timeline) unaccounted() Seconds {
	rest := t.Total
	for _, link := range t.Critical {
		rest -= link.Took
	}
	return max(rest, 0)
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// clock is a place on the time axis: "0:00", "8:20".
func clock(s Seconds) string {
	whole := int(time.Duration(s).Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", whole/60, whole%60)
}
