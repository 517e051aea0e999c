package gates

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// loopbackName is under which an API server speaks to itself: whoever asks for that name is shown a certificate that it makes when its
// process starts, and whose subject ends in that moment ("apiserver-loopback-client@1764075600"). Source: Kubernetes 1.36, ApplyTo in
// staging/src/k8s.io/apiserver/pkg/server/options/serving_with_loopback.go, and GenerateSelfSignedCertKeyWithOptions in
// staging/src/k8s.io/client-go/util/cert/cert.go. The same moment is in its metrics, behind megabytes of others.
const loopbackName = "apiserver-loopback-client"

// introducer is a client to which API servers show that certificate. Nobody vouches for it, and nothing is sent to who has it: it may
// shorten the row of answers that servers have to give for which the cluster's authority does vouch.
func introducer(config *rest.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:             config.Proxy,
		DialContext:       config.Dial,
		TLSClientConfig:   &tls.Config{ServerName: loopbackName, InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
}

// runningFor is for how long the process of an API server has run, both moments by the clock of its own machine; false where it does not
// tell. What it answers does not count: without a certificate of the caller's that is a refusal.
func runningFor(ctx context.Context, client *http.Client, url string) (time.Duration, bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, false
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, false
	}
	response.Body.Close()
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil || len(response.TLS.PeerCertificates) == 0 {
		return 0, false
	}
	began, is := strings.CutPrefix(response.TLS.PeerCertificates[0].Subject.CommonName, loopbackName+"@")
	at, err := strconv.ParseInt(began, 10, 64)
	if !is || err != nil {
		return 0, false
	}
	return now.Sub(time.Unix(at, 0)), true
}

// allSettled tells whether all API servers have run for as long as makes a short row of answers enough, and in any case why.
func (s steady) allSettled(ctx context.Context) (bool, string) {
	client := introducer(s.Kube.Config())
	ages, known := make([]time.Duration, len(s.Servers)), make([]bool, len(s.Servers))
	var group sync.WaitGroup
	for i, server := range s.Servers {
		group.Go(func() { ages[i], known[i] = runningFor(ctx, client, server.url) })
	}
	group.Wait()
	youngest := -1
	for i, server := range s.Servers {
		if !known[i] {
			return false, fmt.Sprintf("the API server of %s does not tell for how long it has run", server.node)
		}
		if youngest < 0 || ages[i] < ages[youngest] {
			youngest = i
		}
	}
	switch {
	case youngest < 0:
		return false, "there is no API server to ask for how long it has run"
	case ages[youngest] < s.Settled:
		return false, fmt.Sprintf("the API server of %s has run for %s only", s.Servers[youngest].node, ages[youngest])
	}
	return true, fmt.Sprintf("each API server has run for %s or longer", ages[youngest])
}
