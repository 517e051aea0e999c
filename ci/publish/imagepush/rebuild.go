package imagepush

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// Rebuild is what came of asking for a tag beside those that a commit has.
type Rebuild struct {
	Number      int      // 1 is the tag itself, 2 the one that ends in -r2
	Was         string   // the newest tag before; empty where there was none
	Differences []string // of the inputs since then, a phrase each; none where that tag is used
}

// numbered is the tag of a rebuild: the tag itself, then with -r2, -r3 and so on behind it.
func numbered(tag name.Tag, number int) name.Tag {
	if number == 1 {
		return tag
	}
	return tag.Context().Tag(fmt.Sprintf("%s-r%d", tag.TagStr(), number))
}

// rebuild finds the newest of a tag's rebuilds where that is the artifact already, by its digest or by its inputs; there is true
// then, and have its digest. Else it finds the first one that the registry does not have.
func (s *session) rebuild(ctx context.Context, tag name.Tag, artifact ocilayout.Artifact) (found Rebuild, have v1.Hash, there bool, err error) {
	for found.Number = 1; ; found.Number++ {
		digest, err := s.resolve(ctx, numbered(tag, found.Number))
		if missing := (*NotFoundError)(nil); errors.As(err, &missing) {
			break
		}
		if err != nil {
			return Rebuild{}, v1.Hash{}, false, err
		}
		have = digest
	}
	if found.Number == 1 {
		return found, v1.Hash{}, false, nil
	}
	newest := numbered(tag, found.Number-1)
	found.Was = newest.TagStr()
	err = s.same(ctx, newest, have, artifact)
	if conflict := (*TagConflictError)(nil); errors.As(err, &conflict) {
		found.Differences = conflict.Differences
		return found, v1.Hash{}, false, nil
	}
	found.Number--
	return found, have, err == nil, err
}
