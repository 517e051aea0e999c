package webref

import "bytes"

// Srcset splits a srcset attribute into its URLs, by the standard's algorithm: a URL ends at white space, or at commas
// that end it; commas in descriptors separate candidates unless in parentheses.
func Srcset(value []byte) [][]byte {
	var urls [][]byte
	for {
		value = bytes.TrimLeft(value, ", \t\r\n\f")
		if len(value) == 0 {
			return urls
		}
		end := bytes.IndexAny(value, " \t\r\n\f")
		if end < 0 {
			end = len(value)
		}
		candidate := value[:end]
		value = value[end:]
		if trimmed := bytes.TrimRight(candidate, ","); len(trimmed) < len(candidate) {
			urls = append(urls, trimmed)
			continue
		}
		urls = append(urls, candidate)
		value = value[descriptorEnd(value):]
	}
}

func descriptorEnd(value []byte) int {
	depth := 0
	for i, c := range value {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return i + 1
		}
	}
	return len(value)
}
