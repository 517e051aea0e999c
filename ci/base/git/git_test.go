package git

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/redact"
)

const canary = "canary-19c2-runner/token+&"

func TestMessagesOfGitAndTheHostingServicesHaveTheirKind(t *testing.T) {
	for message, want := range map[string]error{
		"To https://github.com/a/b.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'https://github.com/a/b.git'\n": ErrNonFastForward,
		" ! [rejected]        main -> main (non-fast-forward)\n": ErrNonFastForward,
		" ! [rejected]        main -> main (stale info)\n":       ErrNonFastForward,
		"remote: error: cannot lock ref 'refs/heads/main': is at 1 but expected 2        \n ! [remote rejected] 1 -> main (failed to update ref)\n":                                                  ErrNonFastForward,
		" ! [remote rejected] main -> main (cannot lock ref 'refs/heads/main': is at 1 but expected 2)\n":                                                                                            ErrNonFastForward,
		" ! [remote rejected] main -> main (incorrect old value provided)\n":                                                                                                                         ErrNonFastForward,
		"remote: error: cannot lock ref 'refs/heads/castle/a': 'refs/heads/castle' exists; cannot create 'refs/heads/castle/a'        \n ! [remote rejected] 1 -> castle/a (failed to update ref)\n": ErrRefConflict,
		" ! [remote rejected] 1 -> castle/a (directory file conflict)\n":                                                                                                                             ErrRefConflict,
		" ! [remote rejected] 1 -> main (shallow update not allowed)\n":                                                                                                                              ErrNonFastForward,

		"remote: error: GH006: Protected branch update failed for refs/heads/main.\n ! [remote rejected] main -> main (protected branch hook declined)\n":                                         ErrProtectedBranch,
		"remote: error: GH013: Repository rule violations found for refs/heads/main.\n ! [remote rejected] main -> main (push declined due to repository rule violations)\n":                      ErrProtectedBranch,
		"remote: GitLab: You are not allowed to push code to protected branches on this project.\n ! [remote rejected] main -> main (pre-receive hook declined)\n":                                ErrProtectedBranch,
		"remote: Forgejo: Not allowed to push to protected branch main\n ! [remote rejected] main -> main (pre-receive hook declined)\n":                                                          ErrProtectedBranch,
		"remote: TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.\n ! [remote rejected] main -> main (TF402455: Pushes are not permitted)\n": ErrProtectedBranch,
		"remote: Permission denied to update branch main.\n ! [remote rejected] main -> main (pre-receive hook declined)\n":                                                                       ErrProtectedBranch,
		"remote: policy: file too large\n ! [remote rejected] main -> main (pre-receive hook declined)\n":                                                                                         ErrRejected,
		"remote: Support for password authentication was removed on August 13, 2021.\nfatal: Authentication failed for 'https://github.com/a/b.git/'\n":                                           ErrUnauthorized,
		"fatal: could not read Username for 'https://github.com': terminal prompts disabled\n":                                                                                                    ErrUnauthorized,
		"git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n":                                                                                         ErrUnauthorized,
		"remote: Write access to repository not granted.\nfatal: unable to access 'https://github.com/a/b.git/': The requested URL returned error: 403\n":                                         ErrForbidden,
		"remote: Permission to a/b.git denied to c.\nfatal: unable to access 'https://github.com/a/b.git/': The requested URL returned error: 403\n":                                              ErrForbidden,
		"ERROR: Permission to a/b.git denied to deploy key\nfatal: Could not read from remote repository.\n":                                                                                      ErrForbidden,
		"remote: Repository not found.\nfatal: repository 'https://github.com/a/b.git/' not found\n":                                                                                              ErrRepositoryNotFound,
		"ERROR: Repository not found.\nfatal: Could not read from remote repository.\n":                                                                                                           ErrRepositoryNotFound,
		"fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.\n":                                                                                     ErrRepositoryNotFound,
		"fatal: couldn't find remote ref refs/heads/x\n":                                                                                                                                          ErrRefNotFound,
		"fatal: unable to access 'https://x/': Could not resolve host: x\n":                                                                                                                       ErrUnreachable,
		"ssh: Could not resolve hostname x: Name or service not known\nfatal: Could not read from remote repository.\n":                                                                           ErrUnreachable,
		"ssh: connect to host x port 22: Connection timed out\nfatal: Could not read from remote repository.\n":                                                                                   ErrUnreachable,
		"fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate\n":                                                                                                ErrUnreachable,
		"fatal: unable to access 'https://x/': server certificate verification failed. CAfile: none CRLfile: none\n":                                                                              ErrUnreachable,
		"No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.\nfatal: Could not read from remote repository.\n":                              ErrHostKey,
		"error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\nfatal: the remote end hung up unexpectedly\n":                                                                 ErrServer,
		"fatal: unable to access 'https://x/': The requested URL returned error: 429\n":                                                                                                           ErrServer,
		"fatal: not a git repository (or any of the parent directories): .git\n":                                                                                                                  ErrNotARepository,
		"fatal: something new\n": nil,
		"":                       nil,
	} {
		if got := classify(message); !errors.Is(got, want) {
			t.Errorf("%q\n is %v, want %v", message, got, want)
		}
	}
}

func TestTheDetailIsTheLineThatSaysMost(t *testing.T) {
	for stderr, want := range map[string]string{
		"remote: \nremote: error: GH006: x        \nTo y\n ! [remote rejected] a -> b (c)\n": "remote: error: GH006: x",
		"warning: w\nfatal: first\nfatal: second\n":                                          "fatal: first",
		"Cloning\nlast\n\n": "last",
		"":                  "",
	} {
		if got := (&Error{Stderr: stderr}).Detail(); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}

func TestAnErrorNamesTheCommandAndTheKindOnOneLine(t *testing.T) {
	_, err := Runner{Dir: t.TempDir()}.Run(t.Context(), "-c", "core.abbrev=7", "rev-parse", "HEAD")
	var failed *Error
	if !errors.As(err, &failed) || !errors.Is(err, ErrNotARepository) || failed.ExitCode != 128 {
		t.Fatalf("error = %#v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "git rev-parse: not a Git repository: fatal: not a git repository") || strings.Contains(text, "\n") {
		t.Errorf("text = %q", text)
	}
}

func TestNoFormOfTheTokenIsInAnError(t *testing.T) {
	runner := Runner{Dir: t.TempDir(), Credentials: Credentials{URL: "https://127.0.0.1:1", Token: canary + "\n"}}
	for _, form := range []string{
		canary,
		"canary-19c2-runner%2Ftoken+&",
		"canary-19c2-runner%2Ftoken%2B%26",
		"eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LTE5YzItcnVubmVyL3Rva2VuKyY=",
	} {
		_, err := runner.Run(t.Context(), "no-such-command-"+form, "https://me:"+form+"@example.org/x")
		var failed *Error
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		whole := err.Error() + failed.Stderr + strings.Join(failed.Args, " ")
		if strings.Contains(whole, form) || !strings.Contains(whole, redact.Mark) {
			t.Errorf("%s", whole)
		}
	}
}

func TestAPasswordInAURLIsSeen(t *testing.T) {
	for remote, want := range map[string]bool{
		"https://example.org/x":           false,
		"https://example.org/@scope/x":    false,
		"ssh://git@example.org/x":         false,
		"git@example.org:x/y":             false,
		"/srv/x.git":                      false,
		"https://token@example.org/x":     true,
		"https://me:pa/ss@example.org/x":  true,
		"ssh://git:secret@example.org/x":  true,
		"http://me:secret@localhost:80/x": true,
	} {
		if got := HasPassword(remote); got != want {
			t.Errorf("%s: %v, want %v", remote, got, want)
		}
	}
}

func TestTheUsersConfigurationAndVariablesAreNotRead(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = From Home\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_TRACE", "1")
	t.Setenv("GIT_CONFIG_PARAMETERS", "'user.name=From Parameters'")
	runner := Runner{Dir: t.TempDir(), Config: []Setting{{"castle.test", "here=there"}}}
	if _, err := runner.Run(t.Context(), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	if got, err := runner.Run(t.Context(), "config", "castle.test"); got != "here=there\n" || err != nil {
		t.Errorf("own setting = %q, %v", got, err)
	}
	if got, err := runner.Run(t.Context(), "config", "user.name"); err == nil {
		t.Errorf("user.name = %q", got)
	}
	runner.Env = []string{"GIT_CONFIG_GLOBAL=" + filepath.Join(home, ".gitconfig")}
	if got, err := runner.Run(t.Context(), "config", "user.name"); got != "From Home\n" || err != nil {
		t.Errorf("user.name with an own variable = %q, %v", got, err)
	}
}

func TestADeadlineEndsGitAndItsHelpers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // connects, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	runner := Runner{Dir: t.TempDir(), Timeout: 200 * time.Millisecond}
	start := time.Now()
	_, err = runner.Run(t.Context(), "ls-remote", "http://"+listener.Addr().String()+"/x.git")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
	if took := time.Since(start); took > killGrace { // an open pipe of git-remote-http would hold it up for outputGrace
		t.Errorf("took %s", took)
	}
}

func TestATokenIsForOneHost(t *testing.T) {
	runner := Runner{Credentials: Credentials{URL: "https://example.org:8443/a/b.git", Username: "me", Token: " " + canary + "\n"}}
	ask := func(host string) string {
		out, _ := runner.RunInput(t.Context(), strings.NewReader("protocol=https\nhost="+host+"\n\n"), "credential", "fill")
		return out
	}
	if got := ask("example.org:8443"); !strings.Contains(got, "username=me\npassword="+canary+"\n") {
		t.Errorf("own host was given %q", got)
	}
	for _, other := range []string{"example.org", "example.org:444", "example.com:8443", "a.example.org:8443"} {
		if got := ask(other); strings.Contains(got, canary) {
			t.Errorf("%s was given the token", other)
		}
	}
}

func TestCredentialsThatCannotBeHandedOverSafelyAreRefused(t *testing.T) {
	for name, credentials := range map[string]Credentials{
		"a token of two lines":     {URL: "https://example.org", Token: "a\nhost=b"},
		"a user name of two lines": {URL: "https://example.org", Username: "a\nb", Token: "x"},
		"a URL without a host":     {URL: "https:///x", Token: "x"},
		"a URL in clear":           {URL: "http://git.example.org/x", Token: "x"},
		"another port in clear":    {URL: "http://git:3000/x", Token: "x", PlainHTTP: []string{"git:3001"}},
	} {
		if _, err := (Runner{Credentials: credentials}).Run(t.Context(), "version"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestATokenGoesInClearToThisMachineAndWhereThatIsSaid(t *testing.T) {
	for name, credentials := range map[string]Credentials{
		"this machine": {URL: "http://127.0.0.1:3000/x", Token: "x"},
		"a named host": {URL: "http://git:3000/x", Token: "x", PlainHTTP: []string{"git:3000"}},
		"no token":     {URL: "http://git.example.org/x"},
		"ssh":          {URL: "ssh://git@git.example.org/x", Token: "x"},
	} {
		if _, err := (Runner{Credentials: credentials}).Run(t.Context(), "version"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Git follows a redirect of its first request. The server that it comes to asks for a password, and gets none.
func TestARedirectTakesNoTokenToAnotherServer(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the other server was sent %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, signedIn := r.BasicAuth(); !signedIn {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	remote := first.URL + "/x.git"
	runner := Runner{Credentials: Credentials{URL: remote, Token: canary}}
	if _, err := runner.Run(t.Context(), "ls-remote", remote); err == nil {
		t.Error("no error")
	}
	if asked.Load() == 0 {
		t.Error("git never came to the other server: does this test still see what it should?")
	}
}

func TestSSHNeverAsksAndChecksTheGivenKnownHosts(t *testing.T) {
	given := Credentials{SSHAuthSock: "/run/agent", KnownHosts: "/it's here/known %h"}
	if got, want := given.sshCommand(), `ssh -oBatchMode=yes -oConnectTimeout=15 -oControlPath=none -oStrictHostKeyChecking=yes -oUserKnownHostsFile='"/it'\''s here/known %%h"'`; got != want {
		t.Errorf("with known hosts:\n%s\n%s", got, want)
	}
	if got := (Credentials{}).sshCommand(); !strings.Contains(got, "StrictHostKeyChecking=yes") || !strings.Contains(got, "BatchMode=yes") {
		t.Errorf("without: %s", got)
	}
	if env := strings.Join(given.environment(), "\n"); !strings.Contains(env, "SSH_AUTH_SOCK=/run/agent") {
		t.Errorf("environment: %s", env)
	}
}

func TestBranchNamesAreCheckedAsGitDoes(t *testing.T) {
	for _, name := range []string{"main", "castle/blog-1a2b3c4", "a.b", "x@y", "è", "a-"} {
		if err := CheckBranch(name); err != nil {
			t.Error(err)
		}
		if _, err := (Runner{}).Run(t.Context(), "check-ref-format", "--branch", name); err != nil {
			t.Errorf("git: %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-x", "a..b", "a b", "a:b", "a~1", "a^", "a?", "a*", "a[b", `a\b`, "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a@{1}", "a\x7f"} {
		if CheckBranch(name) == nil {
			t.Errorf("%q was taken", name)
		}
		if _, err := (Runner{}).Run(t.Context(), "check-ref-format", "--branch", name); err == nil {
			t.Errorf("git takes %q", name)
		}
	}
}

func TestOutputIsReadWhileGitRuns(t *testing.T) {
	runner := Runner{Dir: t.TempDir()}
	var got []byte
	err := runner.Pipe(t.Context(), strings.NewReader("content"), func(stdout io.Reader) (err error) {
		got, err = io.ReadAll(stdout)
		return err
	}, "hash-object", "--stdin")
	if want := "6b584e8ece562ebffc15d38808cd6b98fc3d97ea\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAReaderThatGivesUpEndsGitAndGitsOwnFailureComesFirst(t *testing.T) {
	runner := Runner{Dir: t.TempDir()}
	gaveUp := errors.New("gave up")
	open, writer, err := os.Pipe() // an input that does not end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close(); writer.Close() })
	err = runner.Pipe(t.Context(), open, func(io.Reader) error { return gaveUp }, "hash-object", "--stdin")
	if !errors.Is(err, gaveUp) {
		t.Errorf("got %v", err)
	}
	err = runner.Pipe(t.Context(), nil, func(stdout io.Reader) error {
		if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
			return gaveUp
		}
		return nil
	}, "cat-file", "--batch")
	if !errors.Is(err, ErrNotARepository) {
		t.Errorf("got %v", err)
	}
}
