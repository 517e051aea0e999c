// Package sopsfile writes SOPS files for age keys: new ones, and those that are there for another key. It takes the key as a value, never
// from the environment, and its errors hold neither a key nor a value.
package sopsfile

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/cmd/sops/common"
	"github.com/getsops/sops/v3/cmd/sops/formats"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/version"
)

// storeOf is how a file of this name is written.
func storeOf(name string) common.Store {
	format := formats.Yaml
	if filepath.Ext(name) == ".json" {
		format = formats.Json
	}
	return common.StoreForFormat(format, config.NewStoresConfig())
}

// Encrypt makes a file of this name of a document in clear, to be opened with the key of any of the recipients ("age1…").
func Encrypt(name string, clear []byte, recipients []string) ([]byte, error) {
	store := storeOf(name)
	branches, err := store.LoadPlainFile(clear)
	if err != nil {
		return nil, fmt.Errorf("%s: what it shall hold cannot be read", name)
	}
	group, err := groupOf(recipients)
	if err != nil {
		return nil, err
	}
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		KeyGroups: []sops.KeyGroup{group}, UnencryptedSuffix: sops.DefaultUnencryptedSuffix, Version: version.Version}}
	return encrypt(name, store, tree)
}

func groupOf(recipients []string) (sops.KeyGroup, error) {
	var group sops.KeyGroup
	for _, recipient := range recipients {
		key, err := sopsage.MasterKeyFromRecipient(recipient)
		if err != nil {
			return nil, fmt.Errorf("%s is not the public part of an age key (age1…)", recipient)
		}
		group = append(group, key)
	}
	if len(group) == 0 {
		return nil, errors.New("there is no age key to encrypt to")
	}
	return group, nil
}

// encrypt encrypts a tree with a new data key, and reads what it has written: it holds the same, or is an error.
func encrypt(name string, store common.Store, tree sops.Tree) ([]byte, error) {
	clear, err := store.EmitPlainFile(tree.Branches)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written", name)
	}
	dataKey, failures := tree.GenerateDataKey()
	if len(failures) > 0 {
		return nil, fmt.Errorf("%s: its key cannot be encrypted: %w", name, errors.Join(failures...))
	}
	if err := common.EncryptTree(common.EncryptTreeOpts{Tree: &tree, Cipher: aes.NewCipher(), DataKey: dataKey}); err != nil {
		return nil, fmt.Errorf("%s cannot be encrypted", name)
	}
	data, err := store.EmitEncryptedFile(tree)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written", name)
	}
	written, err := store.LoadEncryptedFile(data)
	if err == nil {
		err = decryptTree(name, &written, dataKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as it was encrypted, and is not written", name)
	}
	if again, err := store.EmitPlainFile(written.Branches); err != nil || !bytes.Equal(again, clear) {
		return nil, fmt.Errorf("%s would hold something else once it is encrypted, and is not written", name)
	}
	return data, nil
}

// Decrypt gives the document in clear, in the form of the file.
func Decrypt(name string, data []byte, ageKey string) ([]byte, error) {
	store := storeOf(name)
	tree, err := open(name, store, data, ageKey)
	if err != nil {
		return nil, err
	}
	return store.EmitPlainFile(tree.Branches)
}

// Rotate encrypts a file anew: with a new data key, for the recipient `to` in the place of all those whose key the text ageKey holds. Other
// recipients stay. A file that is encrypted to anything but age keys in one group is refused, since those could not be kept.
func Rotate(name string, data []byte, ageKey, to string) ([]byte, error) {
	store := storeOf(name)
	tree, err := open(name, store, data, ageKey)
	if err != nil {
		return nil, err
	}
	given, err := Recipients(ageKey)
	if err != nil {
		return nil, err
	}
	recipients := []string{to}
	for _, key := range tree.Metadata.KeyGroups[0] {
		if recipient := key.ToString(); !slices.Contains(given, recipient) && recipient != to {
			recipients = append(recipients, recipient)
		}
	}
	group, err := groupOf(recipients)
	if err != nil {
		return nil, err
	}
	tree.Metadata.KeyGroups = []sops.KeyGroup{group}
	return encrypt(name, store, tree)
}

// RecipientsOf are the keys that a file is encrypted to; nil where it is no SOPS file.
func RecipientsOf(name string, data []byte) []string {
	tree, err := storeOf(name).LoadEncryptedFile(data)
	if err != nil {
		return nil
	}
	recipients := []string{}
	for _, group := range tree.Metadata.KeyGroups {
		for _, key := range group {
			recipients = append(recipients, key.ToString())
		}
	}
	return recipients
}

// Recipients are the public parts of the keys in a text.
func Recipients(ageKey string) ([]string, error) {
	identities, err := age.ParseIdentities(strings.NewReader(ageKey))
	if err != nil {
		return nil, errors.New("what was given as age key is none (AGE-SECRET-KEY-1…)") // the parser's error would quote it
	}
	var recipients []string
	for _, identity := range identities {
		switch identity := identity.(type) {
		case *age.X25519Identity:
			recipients = append(recipients, identity.Recipient().String())
		case *age.HybridIdentity:
			recipients = append(recipients, identity.Recipient().String())
		}
	}
	return recipients, nil
}

// open decrypts a file and checks that nobody has changed it since it was encrypted.
func open(name string, store common.Store, data []byte, ageKey string) (sops.Tree, error) {
	tree, err := store.LoadEncryptedFile(data)
	if err != nil {
		return sops.Tree{}, fmt.Errorf("%s is not a SOPS file", name)
	}
	if len(tree.Metadata.KeyGroups) != 1 {
		return sops.Tree{}, fmt.Errorf("%s has %d groups of keys, and castle knows files with one", name, len(tree.Metadata.KeyGroups))
	}
	group := tree.Metadata.KeyGroups[0]
	for _, key := range group {
		if _, is := key.(*sopsage.MasterKey); !is {
			return sops.Tree{}, fmt.Errorf("%s is encrypted to a key of the kind %s, and castle knows age alone", name, key.TypeToIdentifier())
		}
	}
	dataKey, err := dataKeyOf(group, ageKey)
	if err != nil {
		return sops.Tree{}, fmt.Errorf("%s: %w", name, err)
	}
	return tree, decryptTree(name, &tree, dataKey)
}

// decryptTree decrypts a tree where it is, and checks its authentication.
func decryptTree(name string, tree *sops.Tree, dataKey []byte) error {
	cipher := aes.NewCipher()
	mac, err := tree.Decrypt(dataKey, cipher)
	if err == nil {
		var written any
		written, err = cipher.Decrypt(tree.Metadata.MessageAuthenticationCode, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
		if err == nil && written != mac {
			err = errors.New("another authentication code")
		}
	}
	if err != nil {
		return fmt.Errorf("%s was changed after it was encrypted, its authentication fails: restore it", name)
	}
	return nil
}

// dataKeyOf opens the file's own key with one of those given.
func dataKeyOf(group []keys.MasterKey, ageKey string) ([]byte, error) {
	given, err := Recipients(ageKey)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(ageKey) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	var parsed sopsage.ParsedIdentities
	if err := parsed.Import(lines...); err != nil {
		return nil, errors.New("what was given as age key is none (AGE-SECRET-KEY-1…)")
	}
	var wanted []string
	for _, key := range group {
		wanted = append(wanted, key.ToString())
		// One that is not given is left alone: SOPS would look for it in the environment and at home.
		if !slices.Contains(given, key.ToString()) {
			continue
		}
		parsed.ApplyToMasterKey(key.(*sopsage.MasterKey))
		if dataKey, err := key.Decrypt(); err == nil {
			return dataKey, nil
		}
	}
	return nil, fmt.Errorf("wrong age key: it is encrypted to %s, the key given is that of %s", strings.Join(wanted, " and "), strings.Join(given, " and "))
}
