package secrets

import (
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"filippo.io/age"

	"tazlab.net/castle/ci/cluster/config"
)

// Names of secrets.
const (
	InfisicalClientID     = "INFISICAL_CLIENT_ID"
	InfisicalClientSecret = "INFISICAL_CLIENT_SECRET"

	// The identities that go into the cluster: each may read one folder, and nothing else.
	InfisicalFluxClientID          = "INFISICAL_FLUX_CLIENT_ID"
	InfisicalFluxClientSecret      = "INFISICAL_FLUX_CLIENT_SECRET"
	InfisicalWorkloadsClientID     = "INFISICAL_WORKLOADS_CLIENT_ID"
	InfisicalWorkloadsClientSecret = "INFISICAL_WORKLOADS_CLIENT_SECRET"

	ProxmoxAPIToken    = "PROXMOX_API_TOKEN" // "user@realm!name=uuid"
	StatePassphrase    = "STATE_PASSPHRASE"
	AWSAccessKeyID     = "AWS_ACCESS_KEY_ID"
	AWSSecretAccessKey = "AWS_SECRET_ACCESS_KEY"
	GitOpsUsername     = "GITOPS_USERNAME"
	GitOpsToken        = "GITOPS_TOKEN"
	GitOpsCA           = "GITOPS_CA"     // PEM, for a Git server with a private CA
	FluxAgeKey         = "SOPS_AGE_KEY"  // Flux decrypts the cluster's manifests with it
	TalosSecrets       = "TALOS_SECRETS" // the cluster's PKI and tokens, written by the first create

	// Written by create once the cluster is up, for people. They are not called KUBECONFIG and TALOSCONFIG, since whoever has Infisical
	// set variables by the secrets' names would give kubectl and talosctl a text where they want a file's name.
	AdminKubeconfig  = "ADMIN_KUBECONFIG"
	AdminTalosconfig = "ADMIN_TALOSCONFIG"

	// Proof stands in the workloads' folder. The layer engine shows with it that a secret comes through; it is of no use to anybody.
	Proof = "CASTLE_PROOF"
)

// flux are the secrets of Flux's folder.
var flux = []string{GitOpsUsername, GitOpsToken, GitOpsCA, FluxAgeKey}

// products are the secrets that come of a cluster: none of it is made with them.
var products = needs{
	{name: AdminKubeconfig, source: SourceInfisical, what: "an administrator's kubeconfig, kept by create", optional: true},
	{name: AdminTalosconfig, source: SourceInfisical, what: "an administrator's talosconfig, kept by create", optional: true},
}

// Sources of secrets.
const (
	SourceSOPS      = "SOPS"
	SourceInfisical = "Infisical"
)

// need is one secret that a cluster is made with.
type need struct {
	name, source, what string
	optional           bool
	create             bool                     // nothing but create and doctor asks for it
	make               string                   // how it is made, where more is to be done than to set it; else empty
	check              func(value string) error // nil: any text but an empty one; its error does not quote the value
}

type needs []need

func (n needs) has(name string) bool {
	return slices.ContainsFunc(n, func(n need) bool { return n.name == name })
}

// without leaves out what only create asks for, unless this is one.
func (n needs) without(create bool) needs {
	return slices.DeleteFunc(slices.Clone(n), func(n need) bool { return n.create && !create })
}

// needsOf is the one list of what a cluster needs and where it belongs. Without Infisical all of it belongs into the SOPS files, and the
// PKI must be there before the first create, which has no place to keep one.
func needsOf(c *config.Cluster) needs {
	rest, pki := SourceInfisical, need{name: TalosSecrets, source: SourceInfisical, what: "the cluster's PKI and tokens", optional: true}
	list := needs{{name: StatePassphrase, source: SourceSOPS, what: "encrypts OpenTofu's states, which nothing else can decrypt", check: checkPassphrase}}
	if c.Secrets.Infisical.Has() {
		list = append(list,
			need{name: InfisicalClientID, source: SourceSOPS, what: "client id of a machine identity's universal auth"},
			need{name: InfisicalClientSecret, source: SourceSOPS, what: "client secret of that identity"})
		for _, r := range readersOf(c) {
			list = append(list,
				need{name: r.id, source: SourceSOPS, what: "client id of the identity that reads " + r.what, create: true, make: r.howToMake(c)},
				need{name: r.secret, source: SourceSOPS, what: "client secret of that identity", create: true, make: r.howToMake(c)})
		}
	} else {
		rest, pki.source, pki.optional = SourceSOPS, SourceSOPS, false
		pki.make = fmt.Sprintf("make it with \"dagger call secrets-init --cluster %s --age-key env:%s export --path FOLDER\", where FOLDER is the cluster's, list the file in secrets.sops and commit it",
			c.Name, AgeKeyVariable)
	}
	list = append(list,
		need{name: GitOpsUsername, source: rest, what: "user that Flux reads the GitOps repository as"},
		need{name: GitOpsToken, source: rest, what: "token of that user"},
		need{name: FluxAgeKey, source: rest, what: "age key that Flux decrypts the cluster's manifests with", check: checkAgeKey},
		need{name: GitOpsCA, source: rest, what: "CA of the Git server", optional: true, check: checkPEM},
		pki)
	if c.Platform == config.PlatformProxmox || c.Platform == config.PlatformSandbox {
		list = append(list, need{name: ProxmoxAPIToken, source: SourceSOPS, what: "token of the Proxmox API", check: checkProxmoxToken})
	}
	if c.Platform == config.PlatformAWS || c.State.Backend == "s3" {
		list = append(list,
			need{name: AWSAccessKeyID, source: SourceSOPS, what: "key id for the S3 store of the states"},
			need{name: AWSSecretAccessKey, source: SourceSOPS, what: "key for that store"})
	}
	return list
}

// Wanted is one secret that a cluster is made with, for who has to provide it.
type Wanted struct {
	Name   string
	Source string // SourceSOPS or SourceInfisical
	What   string // what it is for
	// Optional says that not every cluster has it, or that castle makes it.
	Optional bool
}

// WantedBy are all secrets that a cluster is made with, but for those that a command of castle makes.
func WantedBy(c *config.Cluster) []Wanted {
	var list []Wanted
	for _, need := range needsOf(c) {
		if need.name != TalosSecrets {
			list = append(list, Wanted{Name: need.name, Source: need.source, What: need.what, Optional: need.optional})
		}
	}
	return list
}

// Problem is one secret that is missing or malformed; no value is in it.
type Problem struct {
	Name   string
	Source string // SourceSOPS or SourceInfisical
	Text   string // one line: what is wrong, where it is looked for, how to mend it
	Fix    string // the last of these alone
	// Withheld says that the source does not give it to this identity, so that it may be there.
	Withheld bool
}

// problems are those of one source. where says where in it a secret is looked for, and how it gets there; refused are those that the source
// has, or may have, and does not give.
func (n needs) problems(values map[string]string, refused map[string]withheld, source string, where func(need) (at, fix string)) []Problem {
	var problems []Problem
	for _, wanted := range n {
		if wanted.source != source {
			continue
		}
		value, has := values[wanted.name]
		at, fix := where(wanted)
		wrong := ""
		why, hidden := refused[wanted.name]
		switch {
		case hidden:
			wrong, fix = why.text, why.fix
		case !has && wanted.optional:
		case !has:
			wrong = "is missing"
		case strings.TrimSpace(value) == "":
			wrong = "is empty"
		case wanted.check != nil:
			if err := wanted.check(value); err != nil {
				wrong = err.Error()
			}
		}
		if wrong != "" {
			problems = append(problems, Problem{Name: wanted.name, Source: source, Fix: fix, Withheld: hidden,
				Text: fmt.Sprintf("%s %s in %s: %s (%s)", wanted.name, wrong, at, fix, wanted.what)})
		}
	}
	return problems
}

// MinPassphrase is the shortest passphrase that OpenTofu's pbkdf2 key provider accepts, in characters.
const MinPassphrase = 16

func checkPassphrase(value string) error {
	if len(value) < MinPassphrase {
		return fmt.Errorf("is shorter than the %d characters that OpenTofu asks for", MinPassphrase)
	}
	if strings.ContainsFunc(value, unicode.IsControl) || !utf8.ValidString(value) {
		return errors.New("holds a line break or another character that cannot be typed")
	}
	return nil
}

// A token of the Proxmox API: user@realm!name=uuid.
var proxmoxToken = regexp.MustCompile(`^[^\s@!=]+@[^\s@!=]+![^\s@!=]+=[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func checkProxmoxToken(value string) error {
	if !proxmoxToken.MatchString(value) {
		return errors.New("is not of the form user@realm!name=uuid")
	}
	return nil
}

func checkAgeKey(value string) error {
	if _, err := age.ParseIdentities(strings.NewReader(value)); err != nil {
		return errors.New("is not an age key (AGE-SECRET-KEY-1…)")
	}
	return nil
}

func checkPEM(value string) error {
	if block, _ := pem.Decode([]byte(value)); block == nil || block.Type != "CERTIFICATE" {
		return errors.New("is not a certificate in PEM")
	}
	return nil
}
