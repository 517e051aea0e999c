package preflight

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// store looks whether the states can be read and who has them locked.
func store(ctx context.Context, s *inspection) []finding {
	if err := s.cluster.StatesAreKept(); err != nil {
		seen, fix, _ := strings.Cut(err.Error(), ":\n")
		return []finding{{Failed, seen, fix}}
	}
	if s.described.State.Backend != config.StateS3 {
		if found := ours(ctx, s, state.Store{Cluster: s.described, Folder: s.cluster.State}); found != nil {
			return found
		}
		return ok("in a volume of this engine, whose lock the kernel keeps")
	}
	values, err := s.files()
	if err != nil {
		return notChecked("%s", seeRow("the keys of the store cannot be read", groupSecrets, "SOPS files"))
	}
	for _, name := range []string{secrets.AWSAccessKeyID, secrets.AWSSecretAccessKey} {
		if _, has := values.Get(name); !has {
			return notChecked("%s", seeRow(name+" is missing", groupSecrets, "complete"))
		}
	}
	at := s.described.State.S3
	states := s.cluster.StateFiles(values)
	keys, err := states.Bucket.List(ctx, s.described.Name+"/")
	if err != nil {
		return []finding{{Failed, err.Error(), fmt.Sprintf("check state.s3 in cluster.yaml, and that %s may list, read, write and delete in bucket %s", secrets.AWSAccessKeyID, at.Bucket)}}
	}
	if found := ours(ctx, s, states); found != nil {
		return found
	}
	if err := states.CheckStore(ctx); err != nil {
		return []finding{{Failed, err.Error(), fmt.Sprintf("use a store that obeys If-None-Match and If-Match when an object is written, "+
			"and let %s write in bucket %s", secrets.AWSAccessKeyID, at.Bucket)}}
	}
	locks, err := states.Locks(ctx)
	if err != nil {
		return []finding{{Failed, err.Error(), fmt.Sprintf("let %s read and write in bucket %s", secrets.AWSAccessKeyID, at.Bucket)}}
	}
	var found []finding
	for _, lock := range locks {
		found = append(found, finding{Warning, lock.String(), fmt.Sprintf("wait for it to end; where nothing of it runs any more, the next run from the same engine frees it, or dagger call state-unlock --cluster %s --confirm %s",
			s.described.Name, lock.ID)})
	}
	if found == nil {
		return ok("bucket %s holds %s of the cluster's, and nothing is locked", at.Bucket, rendering.Count(len(keys), "object"))
	}
	return found
}

// ours finds states, notes and records that are another cluster's of this name; nil where there are none.
func ours(ctx context.Context, s *inspection, states state.Store) []finding {
	vacant, err := states.Vacant(ctx)
	if err == nil && vacant {
		return nil
	}
	values, filesErr := s.files()
	if filesErr != nil {
		return notChecked("%s", seeRow("whose the states are cannot be told", groupSecrets, "SOPS files"))
	}
	me, identityErr := s.cluster.Identity(values)
	if identityErr != nil || me.ID == "" {
		return notChecked("%s", seeRow("whose the states are cannot be told", groupSecrets, "complete"))
	}
	if err == nil {
		err = states.Belongs(ctx, me, "")
	}
	if err != nil {
		seen, fix, _ := strings.Cut(err.Error(), "; nothing was changed: ")
		return []finding{{Failed, seen, cmp.Or(fix, "let it be read")}}
	}
	return nil
}
