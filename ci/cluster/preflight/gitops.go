package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
)

// readable fetches the tip of the branch that Flux follows, as Flux will, and looks for the cluster's folder in it.
func readable(ctx context.Context, s *inspection) []finding {
	clone, why := s.clone(ctx, "")
	if why != nil {
		return why
	}
	defer clone.close()
	source := s.described.GitOps
	if err := clone.fetch(ctx); err != nil {
		return []finding{{Failed, fmt.Sprintf("%s, branch %s: %s", source.URL, source.Branch, said(err)), fixOf(err, secrets.GitOpsToken+" reads it")}}
	}
	if _, err := clone.git.Run(ctx, "cat-file", "-e", tip+":"+source.Path); err != nil {
		return []finding{{Failed, fmt.Sprintf("branch %s of %s has no folder %s", source.Branch, source.URL, source.Path),
			"commit the folder with what Flux shall apply, or write the one that is there as gitops.path"}}
	}
	return ok("%s, branch %s, with %s", source.URL, source.Branch, source.Path)
}

// writable tries a push that is never made: to publish needs it, the cluster does not.
func writable(ctx context.Context, s *inspection) []finding {
	clone, why := s.clone(ctx, s.asked.PushToken)
	if why != nil {
		return why
	}
	defer clone.close()
	if err := clone.fetch(ctx); err != nil {
		return notChecked("%s", seeRow("it cannot be read with this token: "+said(err), groupGitOps, "readable"))
	}
	whose := "--git-token"
	if s.asked.PushToken == "" {
		whose = secrets.GitOpsToken
	}
	branch := s.described.GitOps.Branch
	_, err := clone.git.Run(ctx, "push", "--dry-run", "--quiet", "origin", tip+":refs/heads/"+branch)
	switch {
	case err == nil:
		return ok("%s may push; whether a rule protects branch %s is seen at a push only", whose, branch)
	case s.asked.PushToken == "" && (errors.Is(err, git.ErrForbidden) || errors.Is(err, git.ErrUnauthorized)):
		return notChecked("%s reads only, as Flux needs it; give the token that publish-blog pushes with as --git-token", secrets.GitOpsToken)
	case errors.Is(err, git.ErrForbidden), errors.Is(err, git.ErrUnauthorized):
		return []finding{{Failed, "the token of --git-token may not push: " + said(err), fixOf(err, "--git-token may write to it (on GitHub: contents, read and write)")}}
	}
	return []finding{{Failed, "a push was tried and would fail: " + said(err), fixOf(err, "--git-token may write to it")}}
}

// tip is where the fetched commit is kept.
const tip = "refs/castle/tip"

// clone is an empty repository in a temporary folder, with the GitOps repository as its remote.
type clone struct {
	git    git.Runner
	branch string
	folder string
}

func (c *clone) close() { _ = os.RemoveAll(c.folder) }

// clone opens the GitOps repository with a token, by default the cluster's own; the findings say why that cannot be.
func (s *inspection) clone(ctx context.Context, token string) (*clone, []finding) {
	values := s.values()
	if values == nil {
		return nil, notChecked("%s", seeRow("the secrets could not be read", groupSecrets, "complete"))
	}
	user, hasUser := values.Get(secrets.GitOpsUsername)
	own, hasToken := values.Get(secrets.GitOpsToken)
	switch {
	case token != "":
		user = ""
	case !hasUser:
		return nil, notChecked("%s", seeRow(secrets.GitOpsUsername+" is missing", groupSecrets, "complete"))
	case !hasToken:
		return nil, notChecked("%s", seeRow(secrets.GitOpsToken+" is missing", groupSecrets, "complete"))
	default:
		token = own
	}
	folder, err := os.MkdirTemp("", "castle-gitops-")
	if err != nil {
		return nil, notChecked("%v", err)
	}
	c := &clone{folder: folder, branch: s.described.GitOps.Branch, git: git.Runner{Dir: folder,
		Credentials: git.Credentials{URL: s.described.GitOps.URL, Username: user, Token: token},
		Config:      []git.Setting{{Key: "remote.origin.url", Value: s.described.GitOps.URL}, {Key: "core.fsync", Value: "none"}},
	}}
	if authority, has := values.Get(secrets.GitOpsCA); has {
		err = c.trust(authority)
	}
	if err == nil {
		_, err = c.git.Run(ctx, "init", "--quiet", "--bare", "--template=", filepath.Join(folder, "clone.git"))
	}
	if err != nil {
		c.close()
		return nil, notChecked("%v", err)
	}
	c.git.Dir = filepath.Join(folder, "clone.git")
	return c, nil
}

// authorities is the variable that names the file of authorities to Git; it wins over Git's configuration.
const authorities = "GIT_SSL_CAINFO"

// trust has Git accept what an authority has signed, beside the others. It is a certificate, and no secret.
func (c *clone) trust(authority string) error {
	others, err := run.SystemAuthorities()
	if named := os.Getenv(authorities); named != "" {
		others, err = os.ReadFile(named)
	}
	if err != nil {
		return err
	}
	file := filepath.Join(c.folder, "authorities.pem")
	c.git.Env = append(c.git.Env, authorities+"="+file)
	return os.WriteFile(file, bytes.Join([][]byte{others, []byte(authority)}, []byte("\n")), 0o600)
}

// fetch gets the tip of the branch with its trees and, where the server can leave them out, no files.
func (c *clone) fetch(ctx context.Context) error {
	_, err := c.git.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--filter=blob:none",
		"origin", "+refs/heads/"+c.branch+":"+tip)
	return err
}

// said is what Git and the server said.
func said(err error) string {
	if failed, is := errors.AsType[*git.Error](err); is && failed.Kind != nil {
		return fmt.Sprintf("%v (%s)", failed.Kind, failed.Detail())
	}
	return err.Error()
}

// fixOf is what to do where Git failed; may is what the credentials have to be able to.
func fixOf(err error, may string) string {
	for _, known := range []struct {
		kind error
		fix  string
	}{
		{git.ErrUnauthorized, "write a token that is valid and not expired, and the user it belongs to"},
		{git.ErrForbidden, "see that " + may},
		{git.ErrRepositoryNotFound, "check gitops.url, and that " + may},
		{git.ErrRefNotFound, "check gitops.branch, or push that branch"},
		{git.ErrUnreachable, "check gitops.url and the network from here; for a private authority " + secrets.GitOpsCA},
	} {
		if errors.Is(err, known.kind) {
			return known.fix
		}
	}
	return "try git ls-remote with the same user and token"
}
