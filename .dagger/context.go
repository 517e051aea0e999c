package main

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"dagger/castle/internal/dagger"
)

// refuseTheModulesOwn refuses a source that nobody has named where the module
// was called by its URL: by default it is then the module's repository, and not
// the caller's. A module that is called from a folder has the caller's.
//
// Castle's own source is taken from the same repository, so its id holds the
// call that fetched the other. Source: engine v0.19.10, core/modulesource.go,
// loadContextFromSource; a folder's is fetched by another call for each.
func (m *Castle) refuseTheModulesOwn(ctx context.Context, source *dagger.Directory) error {
	own, err := m.isTheModulesOwn(ctx, source)
	if err == nil && own {
		err = errors.New("the repository to work on is not known: the module was called by its address, " +
			"and its own repository is not yours; add --source . (your working tree), or --source and a Git URL")
	}
	return err
}

// ifTheModulesOwn is what to add where a cluster was looked for in the module's
// own repository, which nobody has named.
func (m *Castle) ifTheModulesOwn(ctx context.Context, repository *dagger.Directory) string {
	if own, err := m.isTheModulesOwn(ctx, repository); err != nil || !own {
		return ""
	}
	return " in the module's own repository, which is not yours; add --repository . (your working tree), or --repository and a Git URL"
}

func (m *Castle) isTheModulesOwn(ctx context.Context, source *dagger.Directory) (bool, error) {
	if m.Self == nil {
		return false, nil // by default, a toolchain has the caller's repository
	}
	own, err := calls(ctx, m.Self)
	if err != nil {
		return false, err
	}
	given, err := calls(ctx, source)
	if err != nil {
		return false, err
	}
	for i, text := range own {
		// A call is its digest, that of what it is called on, its type and its name.
		if text == "tree" && i >= 3 && slices.Contains(given, own[i-3]) {
			return true, nil
		}
	}
	return false, nil
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
