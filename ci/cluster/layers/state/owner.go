package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state/objects"
)

// States, locks, notes and records are found by the cluster's name, and two repositories can each have a cluster
// of one name. So an owner's record stands beside them, in the folder and in the bucket, and is compared before
// anything there is read, written or removed.
//
// A cluster knows itself by two things that no other has: the key of its states, which is in its SOPS files and so
// known without Infisical, and its PKI. One that agrees in the first is the same cluster unless the second
// differs, which is what a copy of a repository with another Infisical looks like, or a PKI that was lost and made
// anew. Where one of both agrees and nothing is left in the states, the record is brought up to date. States
// without a record, of an earlier castle, are the cluster's if its key opens them all.

// ownerFile is the record's name.
const ownerFile = "owner.json"

// Identity is a cluster's, as its description and its secrets give it. It holds no secret that is kept anywhere.
type Identity struct {
	Cluster string
	// ID is derived from the key of the states: the same in every clone of a repository. It is empty where the
	// passphrase is missing.
	ID string
	// PKI is derived from the cluster's PKI; empty where that is not known, be it that there is none yet or that
	// Infisical was not asked.
	PKI string
	Origin

	key string // of the states
}

// Origin tells a person which repository a cluster is of.
type Origin struct {
	GitOps string `json:"gitops"` // the repository that Flux follows, and the path in it
	Folder string `json:"folder"` // of the description, in its own repository
}

func (o Origin) String() string { return fmt.Sprintf("%s (%s)", o.GitOps, o.Folder) }

// OriginOf is where a description comes from. A URL in it has no credentials: the description refuses them.
func OriginOf(cluster *config.Cluster, folder string) Origin {
	return Origin{GitOps: cluster.GitOps.URL + " " + cluster.GitOps.Path, Folder: folder}
}

// IdentityOf is a cluster's identity. key is that of its states and pki the id in its machine secrets; each may be
// empty.
func IdentityOf(cluster *config.Cluster, folder, key, pki string) Identity {
	return Identity{Cluster: cluster.Name, ID: fingerprint("castle: cluster by the key of its states", key),
		PKI: fingerprint("castle: cluster by its PKI", pki), Origin: OriginOf(cluster, folder), key: key}
}

// fingerprint is a short text that tells secrets apart and gives none away; "" of none.
func fingerprint(domain, secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(domain + "\x00" + secret))
	return hex.EncodeToString(sum[:8])
}

// Owner is the record of whose a place is.
type Owner struct {
	Cluster string    `json:"cluster"`
	ID      string    `json:"id"`
	PKI     string    `json:"pki,omitempty"`
	Made    time.Time `json:"made"`
	By      Origin    `json:"by"`
}

// kinship is how a record and an identity are related.
type kinship int

const (
	stranger  kinship = iota
	halfKnown         // one of both agrees, and the other differs
	same
)

func (i Identity) kinship(owner Owner) kinship {
	ids, pkis := i.ID == owner.ID, i.PKI == owner.PKI
	unknown := i.PKI == "" || owner.PKI == ""
	switch {
	case ids && (pkis || unknown):
		return same
	case ids || pkis && !unknown:
		return halfKnown
	}
	return stranger
}

// NotOurs says that a place holds another cluster of the same name.
type NotOurs struct {
	Where  string
	Ours   Identity
	Theirs Owner // its ID alone is known of states without a record
	// Likely says that it may be this cluster all the same, with another passphrase or PKI.
	Likely string
}

func (n *NotOurs) Error() string {
	theirs := n.Theirs.ID
	if n.Theirs.By != (Origin{}) {
		theirs += " of " + n.Theirs.By.String()
	}
	text := fmt.Sprintf("the states of %q in %s belong to another cluster: %s, and this description is %s of %s; "+
		"nothing was changed: use another name or bucket",
		n.Ours.Cluster, n.Where, theirs, cmp.Or(n.Ours.ID, "(without STATE_PASSPHRASE)"), n.Ours.Origin)
	if n.Likely != "" {
		text += ", or, " + n.Likely
	}
	return text
}

// Unreachable says that it could not be looked up whose a place is.
type Unreachable struct {
	Where string
	Err   error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("whose the states in %s are cannot be looked up: %v", u.Where, u.Err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

// place is a vault with the words for it.
type place struct {
	vault
	where string
}

// places are where the cluster keeps something: the folder, with notes and records, and the bucket.
func (s Store) places() (list []place) {
	if s.Folder != "" {
		list = append(list, place{folderVault(s.Folder), "this engine's volume"})
	}
	if s.Bucket != nil {
		list = append(list, place{s.vault(), "bucket " + s.Cluster.State.S3.Bucket})
	}
	return list
}

// Belongs fails with *NotOurs where a place holds another cluster's. It changes nothing. typed is the ID of an
// owner that a person has named, whose identity cannot be told from this cluster's otherwise; "" for none.
func (s Store) Belongs(ctx context.Context, me Identity, typed string) error {
	for _, place := range s.places() {
		if _, _, err := place.check(ctx, me, typed); err != nil {
			return err
		}
	}
	return nil
}

// Own makes sure that all places are the cluster's, and writes the record where there is none. The caller holds
// the lock on the folder.
func (s Store) Own(ctx context.Context, me Identity, now time.Time) error {
	if err := s.Belongs(ctx, me, ""); err != nil || me.ID == "" { // none is claimed where another is somebody else's
		return err
	}
	for _, place := range s.places() {
		if err := place.claim(ctx, me, now); err != nil {
			return err
		}
	}
	return nil
}

// Vacant tells that no place holds a record or a state, so that there is nothing to compare.
func (s Store) Vacant(ctx context.Context) (bool, error) {
	for _, place := range s.places() {
		_, _, err := place.get(ctx, ownerFile)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, &Unreachable{place.where, err}
		}
		if kept, err := place.readable(ctx); err != nil || len(kept) > 0 {
			return false, err
		}
	}
	return true, nil
}

// RecordsAreOf fails where the folder's record names another repository than the description: for what shows
// records of runs without any secret, by which it could know better.
func (s Store) RecordsAreOf(ctx context.Context, origin Origin) error {
	data, _, err := folderVault(s.Folder).get(ctx, ownerFile)
	var owner Owner
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &owner)
	}
	if err == nil && owner.By.GitOps != origin.GitOps {
		err = fmt.Errorf("the runs of %q in this engine's volume are those of a cluster of %s, "+
			"and this description is of %s: use another name, or, if cluster.yaml was changed, call create first", s.Cluster.Name, owner.By, origin)
	}
	return err
}

// Disown removes the records: the next create begins anew here.
func (s Store) Disown(ctx context.Context) error {
	for _, place := range s.places() {
		if err := place.delete(ctx, ownerFile, ""); err != nil {
			return err
		}
	}
	return nil
}

// check compares the record. version is "" where there is none.
func (p place) check(ctx context.Context, me Identity, typed string) (owner Owner, version string, err error) {
	data, version, err := p.get(ctx, ownerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Owner{}, "", p.proveUnrecorded(ctx, me, typed)
	}
	if err != nil {
		return Owner{}, "", &Unreachable{p.where, err}
	}
	if err := json.Unmarshal(data, &owner); err != nil || owner.ID == "" {
		return Owner{}, "", errors.Join(fmt.Errorf("whose the states in %s are cannot be read from %s there: "+
			"look at it by hand; nothing was changed", p.where, ownerFile), err)
	}
	refused := &NotOurs{Where: p.where, Ours: me, Theirs: owner}
	wipe := "remove the cluster with nuclear-wipe --owner " + owner.ID
	switch me.kinship(owner) {
	case same:
		return owner, version, nil
	case halfKnown:
		if left, err := p.left(ctx, me); err != nil || len(left) == 0 {
			return owner, version, err
		}
		refused.Likely = "if its STATE_PASSPHRASE was changed, put the former one back, or " + wipe
		if me.ID == owner.ID {
			refused.Likely = "if its TALOS_SECRETS were lost and made anew, put the former ones back, or " + wipe
		}
	case stranger:
		if me.PKI != "" && owner.PKI != "" {
			return owner, version, refused // no typed word makes it this cluster's
		}
		refused.Likely = "if it is this cluster and its STATE_PASSPHRASE is lost, " + wipe
	}
	if typed == owner.ID {
		return owner, version, nil
	}
	return owner, version, refused
}

// claim writes the record where there is none, or where it can be brought up to date.
func (p place) claim(ctx context.Context, me Identity, now time.Time) error {
	owner, version, err := p.check(ctx, me, "")
	if err != nil {
		return err
	}
	wanted := Owner{Cluster: me.Cluster, ID: me.ID, PKI: cmp.Or(me.PKI, owner.PKI), Made: owner.Made, By: me.Origin}
	if version == "" {
		wanted.Made = now.UTC()
	}
	if wanted.By.GitOps == owner.By.GitOps {
		wanted.By = owner.By // each clone has a folder of its own
	}
	if wanted == owner {
		return nil
	}
	data, err := json.Marshal(wanted)
	if err == nil {
		err = p.put(ctx, ownerFile, data, version)
	}
	if errors.Is(err, objects.ErrChanged) {
		_, _, err = p.check(ctx, me, "") // two first runs at once: one of them wrote it
	}
	return err
}

// proveUnrecorded fails where states without a record, of an earlier castle, are not opened by the cluster's key.
func (p place) proveUnrecorded(ctx context.Context, me Identity, typed string) error {
	kept, err := p.readable(ctx)
	if err != nil {
		return err
	}
	var lineages []string // states have no other name
	others := false
	for _, one := range kept {
		lineages = append(lineages, one.Lineage)
		if _, err := decrypt(one.Data, me.key); err != nil {
			others = true
		}
	}
	id := fingerprint("castle: states without a record", strings.Join(lineages, " "))
	if !others || typed == id {
		return nil
	}
	return &NotOurs{Where: p.where, Ours: me, Theirs: Owner{ID: id}, Likely: "if they are this cluster's under a former " +
		"STATE_PASSPHRASE, put that back, or remove the cluster with nuclear-wipe --owner " + id}
}

// left are the layers whose states hold something, or cannot be opened.
func (p place) left(ctx context.Context, me Identity) (names []string, err error) {
	kept, err := p.readable(ctx)
	for _, one := range kept {
		text, err := decrypt(one.Data, me.key)
		held, parseErr := parse(string(text))
		if err != nil || parseErr != nil || held == nil || len(held.addresses()) > 0 {
			names = append(names, one.Layer)
		}
	}
	return names, err
}

// readable are the states that there are. One that was cut off tells nobody whose it is.
func (p place) readable(ctx context.Context) (kept []Kept, err error) {
	for _, layer := range layers.All {
		data, _, err := p.get(ctx, nameOf(layer.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &Unreachable{p.where, err}
		}
		if one, err := keep(layer.Name, data); err == nil {
			kept = append(kept, one)
		}
	}
	return kept, nil
}
