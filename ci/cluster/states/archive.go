package states

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
)

// Export writes all states to an archive, for the holder of the cluster's age key and of those of more recipients (age1…).
func Export(ctx context.Context, cluster *run.Cluster, out string, more []string) (done string, err error) {
	own, err := sopsfile.Recipients(cluster.AgeKey)
	if err != nil {
		return "", err
	}
	var to []age.Recipient
	for _, text := range append(own, more...) {
		recipients, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return "", fmt.Errorf("the recipient %q: %w", text, err)
		}
		to = append(to, recipients...)
	}
	err = alone(ctx, cluster, "state-export", func(store state.Store) error {
		file, err := renameio.NewPendingFile(out, renameio.WithPermissions(0o600))
		if err != nil {
			return err
		}
		defer file.Cleanup()
		exported, err := store.Export(ctx, file, to, time.Now())
		if err != nil {
			return err
		}
		done = fmt.Sprintf("exported the states of %s, encrypted for %s\n", strings.Join(exported, ", "), rendering.Count(len(to), "age key"))
		return file.CloseAtomicallyReplace()
	})
	return done, err
}

// Import writes the states of an archive. confirm is the cluster's name. With replace states that differ become copies; without they
// are refused.
func Import(ctx context.Context, cluster *run.Cluster, archive string, replace bool, confirm string) (done string, err error) {
	if err := confirmed(cluster, "state-import writes the states of the archive as this cluster's", confirm); err != nil {
		return "", err
	}
	err = alone(ctx, cluster, "state-import", func(store state.Store) error {
		identities, err := identities(cluster)
		if err != nil {
			return err
		}
		file, err := os.Open(archive)
		if err != nil {
			return err
		}
		defer file.Close()
		list, err := store.ReadArchive(file, identities)
		if err != nil {
			return err
		}
		written, err := store.Accept(ctx, list, replace, time.Now())
		done = told("imported", written, "the states are there already")
		return err
	})
	return done, err
}

// identities are the keys of the cluster's SOPS file; that one of them opens it was seen when the secrets were read.
func identities(cluster *run.Cluster) ([]age.Identity, error) {
	identities, err := age.ParseIdentities(strings.NewReader(cluster.AgeKey))
	if err != nil {
		return nil, errors.New("the age key is none (AGE-SECRET-KEY-1…)") // age's own error may quote it
	}
	return identities, nil
}

// told says of which layers something was done.
func told(what string, layers []string, nothing string) string {
	if len(layers) == 0 {
		return nothing + "\n"
	}
	return fmt.Sprintf("%s the states of %s\n", what, strings.Join(layers, ", "))
}
