package siteheaders

import "strings"

// features are those that no site needs unless it says so, in the order of the header.
var features = []string{"camera", "geolocation", "microphone", "payment", "usb"}

// permissions writes the Permissions-Policy. A frame gets a feature only where the page around it has it as well.
func (n needs) permissions() string {
	entries := make([]string, len(features))
	for i, feature := range features {
		allowed := n.sources(permission + feature)
		list := "(" + strings.Join(allowed, " ") + ")"
		for _, source := range allowed {
			if source == "*" {
				list = "*"
			}
		}
		entries[i] = feature + "=" + list
	}
	return strings.Join(entries, ", ")
}

// delegate reads a frame's allow attribute, such as "camera; microphone https://meet.example". origin is where the
// frame comes from.
func (d *document) delegate(allow, origin string) {
	for entry := range strings.SplitSeq(allow, ";") {
		fields := strings.Fields(strings.ToLower(entry))
		if len(fields) == 0 || !isFeature(fields[0]) {
			continue
		}
		name := permission + fields[0]
		d.need(name, "self")
		if len(fields) == 1 {
			fields = append(fields, "'src'")
		}
		for _, to := range fields[1:] {
			switch {
			case to == "*":
				d.need(name, "*")
			case to == "'src'" && origin != "":
				d.need(name, `"`+origin+`"`)
			case strings.HasPrefix(to, "https://"):
				d.need(name, `"`+to+`"`)
			}
		}
	}
}

func isFeature(name string) bool {
	for _, feature := range features {
		if feature == name {
			return true
		}
	}
	return false
}
