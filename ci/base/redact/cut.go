package redact

import "strings"

// A text may begin or end within a secret: the last line of a process that was killed, the last bytes of a log. What is left of the
// secret is taken out as well where it is long enough to be known for it, and to be of use to anybody.

// enough is how many bytes of a form's beginning or end are taken for a part of it.
func enough(form string) int { return min(max(len(form)/2, shortestValue), longestLeft) }

// longestLeft is what a part of a secret must be shorter than to be left: of a random value in hexadecimal 64 bits.
const longestLeft = 16

// ends finds forms by their first and their last shortestValue bytes.
type ends struct {
	first, last map[string][]string
	longest     int
}

func endsOf(forms []string) *ends {
	e := &ends{first: map[string][]string{}, last: map[string][]string{}}
	for _, form := range forms {
		if len(form) <= shortestValue {
			continue
		}
		first, last := form[:shortestValue], form[len(form)-shortestValue:]
		e.first[first] = append(e.first[first], form)
		e.last[last] = append(e.last[last], form)
		e.longest = max(e.longest, len(form))
	}
	return e
}

// redact takes out what the text begins and ends with of a form.
func (e *ends) redact(text string) string {
	for at := max(0, len(text)-e.longest); at+shortestValue <= len(text); at++ {
		rest := text[at:]
		if isPart(rest, e.first[rest[:shortestValue]], strings.HasPrefix) {
			text = text[:at] + Mark
			break
		}
	}
	for to := min(len(text), e.longest); to >= shortestValue; to-- {
		rest := text[:to]
		if isPart(rest, e.last[rest[to-shortestValue:]], strings.HasSuffix) {
			return Mark + text[to:]
		}
	}
	return text
}

// isPart tells whether a rest is a part of a form, and a large enough one.
func isPart(rest string, forms []string, is func(form, rest string) bool) bool {
	for _, form := range forms {
		if len(rest) >= enough(form) && is(form, rest) {
			return true
		}
	}
	return false
}
