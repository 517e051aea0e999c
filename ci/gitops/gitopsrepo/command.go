package gitopsrepo

import (
	"strconv"
	"strings"
)

// command is the call that makes the repository anew, on lines that a page can show.
func (r Request) command(cluster string) string {
	words := []string{"dagger call gitops-repo --cluster " + cluster}
	add := func(option, value string) {
		if value != "" {
			words = append(words, "--"+option+" "+shellWord(value))
		}
	}
	add("domain", r.Domain)
	add("acme-email", r.ACMEEmail)
	if r.Issuer != Staging {
		add("acme-issuer", r.Issuer)
	}
	add("blog-image", r.BlogImage)
	add("blog-host", r.BlogHost)
	if r.BlogPort != 0 && r.BlogPort != defaultPort {
		add("blog-port", strconv.Itoa(r.BlogPort))
	}
	add("ingress-address", r.IngressAddress)
	add("git-provider", r.GitProvider)
	if r.AlertType != defaultAlerts {
		add("alert-type", r.AlertType)
	}
	add("owner", r.Owner)
	add("runner-group", r.RunnerGroup)
	add("backup-bucket", r.BackupBucket)
	add("backup-endpoint", r.BackupEndpoint)
	add("backup-region", r.BackupRegion)
	add("age-recipient", strings.Join(r.AgeRecipients, ","))
	add("chart-mirror", r.ChartMirror)
	add("with", strings.Join(r.With, ","))
	add("without", strings.Join(r.Without, ","))
	words = append(words, "export --path .")
	return strings.Join(words, " \\\n    ")
}

// shellWord quotes what a shell would read as more than a word. None of the options can hold a quote.
func shellWord(text string) string {
	if strings.ContainsAny(text, " *?$&;<>()|~#") {
		return "'" + text + "'"
	}
	return text
}
