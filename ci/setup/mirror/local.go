package mirror

import (
	"context"

	"tazlab.net/castle/ci/setup/images"
)

// Local is what the mirror in the cache has to offer in place of the list's images, of whatever group: the stand-ins that
// Build left there. It makes nothing.
func Local(ctx context.Context, cache string, list images.List) (images.Local, error) {
	at, stop, err := serveToSelf(cache, true, nil)
	if err != nil {
		return nil, err
	}
	defer stop()
	// Most machines need only some of the stand-ins, so that one that is missing is no problem.
	findings, _ := Verify(ctx, VerifyOptions{List: list, Registry: at.String(), StandInsOnly: true})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return LocalOf(findings), nil
}

// LocalOf is what a mirror has to offer under digests that the list does not name. What Verify found a problem with is
// left out: nothing takes that image's place.
func LocalOf(findings []Finding) images.Local {
	local := images.Local{}
	for _, f := range findings {
		if f.Problem == nil && f.Digest != f.Image.Digest {
			local[f.Image.Key] = images.LocalImage{For: f.Image.Pinned(), Digest: f.Digest}
		}
	}
	return local
}
