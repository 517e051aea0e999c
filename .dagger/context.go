package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"dagger/castle/internal/dagger"
)

// refuseTheModulesOwn refuses a repository that nobody has named where the module
// was called by its URL, or is a dependency that has one: by default it is then the
// module's own, and not the caller's. A module in a folder has that folder's; a
// toolchain has the caller's. flag is the one that names a repository.
//
// Castle's own source is taken from the same repository, so its id holds the
// call that fetched the other. Source: engine v0.19.10, core/modulesource.go,
// loadContextFromSource; a folder's is fetched by another call for each.
func (m *Castle) refuseTheModulesOwn(ctx context.Context, repository *dagger.Directory, flag string) error {
	own, err := calls(ctx, m.Self)
	if err != nil {
		return err
	}
	given, err := calls(ctx, repository)
	if err != nil {
		return err
	}
	for i, text := range own {
		// A call is its digest, that of what it is called on, its type and its name.
		if text == "tree" && i >= 3 && slices.Contains(given, own[i-3]) {
			return fmt.Errorf("the repository to work on is not known: the module was called by its address, "+
				"and its own repository is not yours; add %s . (your working tree), or %[1]s and a Git URL", flag)
		}
	}
	return nil
}

// isNamed tells whether the call names a folder itself: a default one is fetched
// by a call of its own.
func isNamed(ctx context.Context, folder *dagger.Directory) (bool, error) {
	texts, err := calls(ctx, folder)
	return !slices.Contains(texts, "_contextDirectory"), err
}

// calls are the texts of a folder's id, which lists the calls that make it.
func calls(ctx context.Context, folder *dagger.Directory) ([]string, error) {
	id, err := folder.ID(ctx)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(string(id))
	if err != nil {
		return nil, nil // not an id of this engine's kind
	}
	return textsIn(data), nil
}

// textsIn are the texts of a message in Protocol Buffers' wire format, and of
// the messages in it, in their order.
func textsIn(message []byte) []string {
	var texts []string
	for len(message) > 0 {
		_, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(1, kind, message); n < 0 {
				return nil
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if inner := textsIn(value); inner != nil {
			texts = append(texts, inner...)
		} else {
			texts = append(texts, string(value))
		}
	}
	return texts
}
