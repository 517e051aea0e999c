//go:build linux

package inside

// PageName is what the image of a site that nobody has published yet starts.
const PageName = "page"

// Page answers every request, a probe's as well, and has no page.
func Page() error { return answer(":80") }
