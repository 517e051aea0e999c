package secrets

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tazlab.net/castle/ci/sandbox/infisical"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/tell"
)

// refusing answers the first n requests whose path ends so with a status and Infisical's body.
func refusing(n int, suffix string, status int, kind, message string) func(http.ResponseWriter, *http.Request) bool {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, suffix) || seen.Add(1) > int64(n) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write([]byte(`{"statusCode":` + strconv.Itoa(status) + `,"error":"` + kind + `","message":"` + message + `"}`)) //nolint:errcheck
		return true
	}
}

const always = 1 << 30

func TestInfisicalMoodsThatPassAreWaitedFor(t *testing.T) {
	for name, door := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"500 at the login":    refusing(2, "/login", 500, "InternalServerError", "Something went wrong"),
		"502 at the list":     refusing(2, "/raw", 502, "Bad Gateway", ""),
		"429 without a time":  refusing(2, "/raw", 429, "RateLimitExceeded", "Rate limit exceeded"),
		"401 revoked token":   refusing(1, "/raw", 401, "UnauthorizedError", "You are not allowed to access this resource"),
		"403 expired token":   refusing(1, "/raw", 403, "TokenError", "Your token has expired. Please re-authenticate."),
		"a connection is cut": cutting(2, "/raw"),
		"the answer is cut":   halving(1, "/raw"),
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "Infisical: %s", name)
			w := newWorld(t, nil)
			w.guard(door)
			w.resolved()
			// A token that is no longer taken is replaced at once.
			if waits := !strings.HasPrefix(name, "40"); waits != strings.Contains(w.notified(), "path /clusters/blue failed at attempt 1") {
				t.Errorf("what was told of the wait: %q", w.notified())
			}
			tell.Observation(t, 0, "%s", w.notified())
			w.clean("the notification", w.notified())
		})
	}
}

// cutting closes the connection without an answer.
func cutting(n int, suffix string) func(http.ResponseWriter, *http.Request) bool {
	var seen atomic.Int64
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, suffix) || seen.Add(1) > int64(n) {
			return false
		}
		panic(http.ErrAbortHandler)
	}
}

// halving closes it in the middle of the answer.
func halving(n int, suffix string) func(http.ResponseWriter, *http.Request) bool {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, suffix) || seen.Add(1) > int64(n) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"secrets":[{"secretKey":"GITOPS_TOKEN",`)) //nolint:errcheck
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func TestInfisicalMoodsThatStayAreNamedWithThePath(t *testing.T) {
	for name, test := range map[string]struct {
		door  func(http.ResponseWriter, *http.Request) bool
		want  []string
		asked int // requests of that kind
		kind  string
	}{
		"wrong client":  {refusing(always, "/login", 401, "UnauthorizedError", "Invalid credentials"), []string{"cannot log in: 401 Unauthorized (Invalid credentials)", "INFISICAL_CLIENT_SECRET"}, 1, "/login"},
		"no permission": {refusing(always, "/raw", 403, "PermissionDenied", "You are not allowed to read on secrets"), []string{"cannot read the secrets: 403 Forbidden", "give the machine identity"}, 1, "/raw"},
		"always expired": {refusing(always, "/raw", 403, "TokenError", "Your token has expired. Please re-authenticate."),
			[]string{"Your token has expired", "a new login did not help"}, 2, "/raw"},
		"wrong project": {refusing(always, "/raw", 404, "NotFound", "Project not found"), []string{"404 Not Found", "check secrets.infisical"}, 1, "/raw"},
		"always 429":    {refusing(always, "/raw", 429, "RateLimitExceeded", "Rate limit exceeded"), []string{"429 Too Many Requests", "after 4 tries"}, 4, "/raw"},
		"always 500":    {refusing(always, "/raw", 500, "InternalServerError", "Something went wrong"), []string{"500 Internal Server Error", "after 4 tries", "later"}, 4, "/raw"},
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "Infisical: %s", name)
			w := newWorld(t, nil)
			w.guard(test.door)
			err := w.fails()
			var refused *InfisicalError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			for _, part := range append(test.want, "project garage, environment prod, path /clusters/blue") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not said in: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
			if got := w.asked(test.kind); got != test.asked {
				t.Errorf("asked %d times, want %d", got, test.asked)
			}
		})
	}
}

func TestRetryAfterIsObeyedAndNotWaitedForBeyondTheDeadline(t *testing.T) {
	limited := func(n int, seconds string) func(http.ResponseWriter, *http.Request) bool {
		refuse := refusing(n, "/raw", 429, "RateLimitExceeded", "Rate limit exceeded")
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/raw") {
				w.Header().Set("Retry-After", seconds)
			}
			return refuse(w, r)
		}
	}
	w := newWorld(t, nil)
	w.guard(limited(1, "1"))
	started := time.Now()
	w.resolved()
	if took := time.Since(started); took < time.Second {
		t.Errorf("asked again after %s, before it was allowed", took)
	}

	w = newWorld(t, nil)
	w.guard(limited(always, "300"))
	started = time.Now()
	err := w.fails()
	if took := time.Since(started); took > time.Minute || w.asked("/raw") != 1 {
		t.Errorf("asked %d times in %s", w.asked("/raw"), took)
	}
	if !strings.Contains(err.Error(), "it asks to wait 5m0s") {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionThatHangsEndsAtTheDeadline(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	w := newWorld(t, nil)
	w.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/raw") {
			return false
		}
		select {
		case <-r.Context().Done():
		case <-released:
		}
		return true
	})
	w.in.pace.attempt, w.in.pace.deadline = 150*time.Millisecond, 500*time.Millisecond
	started := time.Now()
	err := w.fails()
	if took := time.Since(started); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within the time") || !strings.Contains(err.Error(), "path /clusters/blue") {
		t.Errorf("got %v", err)
	}
	if w.asked("/raw") < 2 {
		t.Errorf("a request that hung was not tried again: %d", w.asked("/raw"))
	}
}

func TestAServerThatIsNotThereIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	w := newWorld(t, nil)
	w.cluster.Secrets.Infisical.URL = "http://" + address + "/"
	if err := w.fails(); !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "after 4 tries") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatIsNotInfisicalsIsTold(t *testing.T) {
	w := newWorld(t, nil)
	w.guard(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>welcome</html>")) //nolint:errcheck
		return true
	})
	if err := w.fails(); !strings.Contains(err.Error(), "not one of Infisical's") {
		t.Errorf("got %v", err)
	}
	w.guard(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://elsewhere.example/api", http.StatusTemporaryRedirect)
		return true
	})
	if err := w.fails(); !strings.Contains(err.Error(), "redirected to https://elsewhere.example: set that") {
		t.Errorf("got %v", err)
	}
}

func TestTheSimulatorsMoodsAreSurvived(t *testing.T) {
	w := newWorld(t, nil)
	moody, err := infisical.Open("", infisical.Seed{Projects: []infisical.Project{{ID: testProject, Slug: "garage",
		Clients:      []infisical.Client{{ID: w.bootstrap[InfisicalClientID], Secret: w.bootstrap[InfisicalClientSecret]}},
		Environments: map[string]map[string]map[string]string{"prod": {testPath: w.remote}}}}},
		profile.Profile{Faults: profile.Faults{profile.InfisicalMoods: ""}})
	if err != nil {
		t.Fatal(err)
	}
	w.infisical = moody
	values := w.resolved()
	if _, err := values.Establish(t.Context(), TalosSecrets, "cluster: {}\n"); err != nil {
		t.Error(err)
	}
}
