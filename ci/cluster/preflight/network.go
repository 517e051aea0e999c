package preflight

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// names resolves those that cluster.yaml has in place of addresses.
func names(ctx context.Context, s *inspection) []finding {
	var wanted []string
	for _, address := range []string{s.described.Proxmox.URL, s.described.Secrets.Infisical.URL, s.described.GitOps.URL, s.described.State.S3.Endpoint} {
		if name := resolvable(address); name != "" && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	if len(wanted) == 0 {
		return ok("there is no name to be resolved")
	}
	errs := make([]error, len(wanted))
	var wait sync.WaitGroup
	for i, name := range wanted {
		wait.Go(func() { _, errs[i] = net.DefaultResolver.LookupNetIP(ctx, "ip", name) })
	}
	wait.Wait()
	var found []finding
	for i, err := range errs {
		if err != nil {
			found = append(found, finding{Failed, fmt.Sprintf("%s cannot be resolved: %v", wanted[i], err), "check the name in cluster.yaml, and the name server of this machine: getent hosts " + wanted[i]})
		}
	}
	if found == nil {
		return ok("%s can be resolved", strings.Join(wanted, ", "))
	}
	return found
}

// resolvable is the name in an address that this machine has to resolve: none in one of numbers, and none that a proxy resolves.
func resolvable(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return ""
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: parsed}); err == nil && proxy != nil {
		return ""
	}
	if _, err := netip.ParseAddr(parsed.Hostname()); err == nil {
		return ""
	}
	return parsed.Hostname()
}

const (
	// skewTold is a difference that people should know of. Answers have whole seconds.
	skewTold = 30 * time.Second
	// skewFails is one with which certificates are not yet good and signed requests are refused.
	skewFails = 5 * time.Minute
)

// clocks compares this machine's with those that others' answers have.
func clocks(ctx context.Context, s *inspection) []finding {
	type clock struct {
		whose string
		time  func() (time.Time, error)
	}
	var ask []clock
	if s.described.MakesMachines() {
		ask = append(ask, clock{"Proxmox", func() (time.Time, error) { return s.cluster.ProxmoxClock(ctx) }})
	}
	if s.described.Secrets.Infisical.Has() {
		ask = append(ask, clock{"Infisical", func() (time.Time, error) { return dateOf(ctx, s.described.Secrets.Infisical.URL) }})
	}
	if len(ask) == 0 {
		return notChecked("nobody whom the cluster needs tells a time before the machines have theirs")
	}
	found := make([][]finding, len(ask))
	var wait sync.WaitGroup
	for i, one := range ask {
		wait.Go(func() {
			began := time.Now()
			at, err := one.time()
			found[i] = skewed(one.whose, at, began.Add(time.Since(began)/2), err)
		})
	}
	wait.Wait()
	all := slices.Concat(found...)
	var same []string
	for _, f := range all {
		if f.verdict == OK {
			same = append(same, f.seen)
		}
	}
	if len(same) == len(all) {
		return ok("%s", strings.Join(same, ", "))
	}
	return slices.DeleteFunc(all, func(f finding) bool { return f.verdict == OK })
}

// skewed judges another clock by the time that this machine had meanwhile.
func skewed(whose string, at, here time.Time, err error) []finding {
	if err != nil {
		return notChecked("%s tells no time: %v", whose, err)
	}
	off := at.Sub(here.Truncate(time.Second))
	verdict, way := OK, "ahead of"
	if off < 0 {
		way = "behind"
	}
	switch {
	case off.Abs() > skewFails:
		verdict = Failed
	case off.Abs() > skewTold:
		verdict = Warning
	default:
		return ok("%s has the same time", whose)
	}
	return []finding{{verdict, fmt.Sprintf("%s is %s %s this machine's clock", whose, off.Abs().Round(time.Second), way),
		"let both be set by NTP: timedatectl on this machine, chronyc tracking on a Proxmox node say which one is wrong"}}
}

// dateOf is the time that a server's answer has.
func dateOf(ctx context.Context, address string) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return time.Time{}, err
	}
	response, err := http.DefaultTransport.RoundTrip(request) // follows no redirect
	if err != nil {
		return time.Time{}, err
	}
	_ = response.Body.Close()
	return http.ParseTime(response.Header.Get("Date"))
}
