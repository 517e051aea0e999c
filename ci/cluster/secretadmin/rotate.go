package secretadmin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
)

// NewKeyVariable is the variable of the environment that holds the age key that replaces another one.
const NewKeyVariable = "SOPS_NEW_AGE_KEY"

// NewKey makes an age key, as age-keygen writes it.
func NewKey() ([]byte, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	redact.Add(key.String())
	return fmt.Appendf(nil, "# public key: %s\n%s\n", key.Recipient(), key), nil
}

// Rotation says which key replaces the cluster's.
type Rotation struct {
	Key       string // the new key's text, by which every file is opened before one is replaced; or
	Recipient string // its public part, where the key itself is not here
	Out       string // the folder that what was changed is written to; the cluster's own to replace it there
}

// rules is where sops looks for whom new files are encrypted to.
const rules = ".sops.yaml"

// RotateAge encrypts every SOPS file of the cluster's folder anew, to another key in the place of the one that the cluster has. All are encrypted, and
// opened with the new key, before the first is replaced; each is replaced as a whole. Files that have the new key already are left alone, so that
// a rotation that was killed is gone on with by the same call, as long as both keys are there. The recipients in the folder's .sops.yaml
// follow last. The text says what was done, and what is still to do.
func RotateAge(cluster *run.Cluster, rotation Rotation) (string, error) {
	to, err := rotation.recipient()
	if err != nil {
		return "", err
	}
	from, err := sopsfile.Recipients(cluster.AgeKey)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(cluster.AgeKey + "\n" + rotation.Key) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "AGE-SECRET-KEY-") {
			redact.Add(line)
		}
	}
	if slices.Contains(from, to) {
		return "", fmt.Errorf("the new key is the old one, %s: give another, such as secrets-age-key makes", to)
	}
	changed, done, err := reencrypted(cluster, rotation.Key, from, to)
	if err != nil {
		return "", err
	}
	if len(changed)+len(done) == 0 {
		return "", fmt.Errorf("there is no SOPS file in %s", cluster.Folder)
	}
	rule, err := rotatedRules(cluster.Folder, from, to)
	if err != nil {
		return "", err
	}
	if err := replace(rotation.Out, append(changed, rule...)); err != nil {
		return "", err
	}
	return told(cluster.Folder, append(changed, rule...), done, from, to), nil
}

func (r Rotation) recipient() (string, error) {
	switch {
	case (r.Key == "") == (r.Recipient == ""):
		return "", errors.New("give the new age key, or its public part where the key itself is elsewhere, and not both: secrets-age-key makes one")
	case r.Recipient != "":
		if _, err := age.ParseX25519Recipient(r.Recipient); err != nil {
			if _, err := age.ParseHybridRecipient(r.Recipient); err != nil {
				return "", fmt.Errorf("%q is not the public part of an age key (age1…)", redact.Text(r.Recipient))
			}
		}
		return r.Recipient, nil
	}
	recipients, err := sopsfile.Recipients(r.Key)
	if err != nil {
		return "", fmt.Errorf("the new key: %w", err)
	}
	if len(recipients) != 1 {
		return "", fmt.Errorf("the text of the new key holds %d keys: give one", len(recipients))
	}
	return recipients[0], nil
}

// written is a file with its new content; its name is relative to the cluster's folder.
type written struct {
	name string
	data []byte
}

// reencrypted are all SOPS files below the cluster's folder: those for the new key, and the names of those that have it already. Its error has a line
// for each file that can be neither.
func reencrypted(cluster *run.Cluster, newKey string, from []string, to string) (changed []written, done []string, err error) {
	var failures []error
	err = filepath.WalkDir(cluster.Folder, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".terragrunt-cache"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == rules || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		recipients := sopsfile.RecipientsOf(file, data)
		if recipients == nil {
			return nil
		}
		name, err := filepath.Rel(cluster.Folder, file)
		if err != nil {
			return err
		}
		old := slices.ContainsFunc(recipients, func(recipient string) bool { return slices.Contains(from, recipient) })
		if slices.Contains(recipients, to) && !old {
			if newKey != "" {
				_, err = sopsfile.Decrypt(file, data, newKey)
			}
			done, failures = append(done, name), append(failures, err)
			return nil
		}
		next, err := rotated(file, data, cluster.AgeKey, newKey, to)
		changed, failures = append(changed, written{name, next}), append(failures, err)
		return nil
	})
	if err := errors.Join(append(failures, err)...); err != nil {
		return nil, nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return changed, done, nil
}

// rotated is a file's content for the new key, which opens it to what the old one does.
func rotated(file string, data []byte, oldKey, newKey, to string) ([]byte, error) {
	next, err := sopsfile.Rotate(file, data, oldKey, to)
	if err != nil || newKey == "" {
		return next, err
	}
	before, err := sopsfile.Decrypt(file, data, oldKey)
	if err != nil {
		return nil, err
	}
	after, err := sopsfile.Decrypt(file, next, newKey)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(before, after) {
		return nil, fmt.Errorf("%s would not hold the same for the new key", file)
	}
	return next, nil
}

// rotatedRules is the folder's .sops.yaml with the new recipient in the old one's place; nothing where it names no old one. It is a text
// to be changed in these places alone, comments and all.
func rotatedRules(folder string, from []string, to string) ([]written, error) {
	data, err := os.ReadFile(filepath.Join(folder, rules))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	next := string(data)
	for _, recipient := range from {
		next = strings.ReplaceAll(next, recipient, to)
	}
	if next == string(data) {
		return nil, nil
	}
	return []written{{rules, []byte(next)}}, nil
}

// replace writes all files, each as a whole. Room for all of them is taken before the first is replaced.
func replace(folder string, files []written) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var pending []*renameio.PendingFile
	defer func() {
		for _, file := range pending {
			err = errors.Join(err, file.Cleanup())
		}
	}()
	for _, one := range files {
		path := filepath.Join(folder, one.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
		if err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		pending = append(pending, file)
		if _, err := file.Write(one.data); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		if err := file.Sync(); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
	}
	for i, file := range pending {
		if err := file.CloseAtomicallyReplace(); err != nil {
			return fmt.Errorf("%d of %d files were replaced, and the same call goes on: %w", i, len(files), err)
		}
	}
	return nil
}

// told is what was done, and what is left to a person.
func told(folder string, changed []written, done, from []string, to string) string {
	var out strings.Builder
	for _, file := range changed {
		fmt.Fprintf(&out, "%s: %s in the place of %s\n", file.name, to, strings.Join(from, " and "))
	}
	for _, name := range done {
		fmt.Fprintf(&out, "%s: had the new key already\n", name)
	}
	for above := filepath.Dir(folder); ; above = filepath.Dir(above) {
		file := filepath.Join(above, rules)
		if data, err := os.ReadFile(file); err == nil && slices.ContainsFunc(from, func(recipient string) bool { return bytes.Contains(data, []byte(recipient)) }) {
			fmt.Fprintf(&out, "%s names the old key, too: it is not of this cluster alone, change it by hand\n", file)
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	out.WriteString("commit the files, and keep the old key until that is done; what Git and the engine remember opens with it for ever, so change the secrets themselves where somebody else has it\n")
	return out.String()
}
