//go:build linux

package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tazlab.net/castle/ci/sandbox/kube/process"
)

const (
	// shortestPeriod keeps a small time scale from turning probes into a busy loop.
	shortestPeriod = 100 * time.Millisecond
	// shortestTimeout is longer than a kubelet's default of 1 s: the sandbox's processes share few cores.
	shortestTimeout = 5 * time.Second
)

// probe follows one run of a container until it ends: first the startup probe, then readiness and liveness.
func (c *container) probe(ctx context.Context, running *process.Process) {
	kill := func(why string) {
		c.worker.agent.event(c.worker.object(), corev1.EventTypeWarning, "Unhealthy", why)
		running.Stop(c.worker.grace())
	}
	if startup := c.spec.StartupProbe; startup != nil && !c.repeat(ctx, startup, true, kill) {
		return
	}
	c.mark(ctx, func() { c.started = true })
	if c.spec.ReadinessProbe == nil {
		c.mark(ctx, func() { c.ready = true })
	} else {
		go c.readiness(ctx)
	}
	if c.spec.LivenessProbe != nil {
		c.repeat(ctx, c.spec.LivenessProbe, false, kill)
	}
}

// mark changes what is reported, unless this run of the container is over.
func (c *container) mark(ctx context.Context, change func()) {
	c.set(func() {
		if ctx.Err() == nil {
			change()
		}
	})
}

// repeat asks until the first success, where that is enough, or for ever; false when the process ended, or was killed
// because the probe had failed for its whole allowance of real time. A time scale shortens a probe's waits, not what it
// grants to a process that is really busy.
func (c *container) repeat(ctx context.Context, probe *corev1.Probe, once bool, kill func(why string)) bool {
	scaled := c.worker.agent.options.Profile.Scaled
	delay, period, allowed := seconds(probe.InitialDelaySeconds, 0), seconds(probe.PeriodSeconds, 10), threshold(probe)
	failures, deadline := 0, time.Now().Add(delay+time.Duration(allowed)*period)
	if c.pause(ctx, scaled(delay)) != nil {
		return false
	}
	for {
		err := c.ask(ctx, probe)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && once:
			return true
		case err == nil:
			failures, deadline = 0, time.Now().Add(time.Duration(allowed)*period)
		default:
			if failures++; failures >= allowed && time.Now().After(deadline) {
				kill(err.Error())
				return false
			}
		}
		if c.pause(ctx, max(scaled(period), shortestPeriod)) != nil {
			return false
		}
	}
}

func (c *container) readiness(ctx context.Context) {
	probe := c.spec.ReadinessProbe
	scaled := c.worker.agent.options.Profile.Scaled
	if c.pause(ctx, scaled(seconds(probe.InitialDelaySeconds, 0))) != nil {
		return
	}
	wanted, allowed := max(int(probe.SuccessThreshold), 1), threshold(probe)
	period := max(scaled(seconds(probe.PeriodSeconds, 10)), shortestPeriod)
	successes, failures := 0, 0
	for {
		err := c.ask(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		if successes >= wanted {
			c.mark(ctx, func() { c.ready = true })
		}
		if failures >= allowed {
			c.mark(ctx, func() { c.ready = false })
		}
		if c.pause(ctx, period) != nil {
			return
		}
	}
}

func (c *container) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask does what a kubelet does; commands inside the container, which has no other program, count as answered.
func (c *container) ask(ctx context.Context, probe *corev1.Probe) error {
	if err := c.worker.node.kubelet.runs(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(seconds(probe.TimeoutSeconds, 1), shortestTimeout))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return c.get(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		return c.connect(ctx, probe.TCPSocket.Host, probe.TCPSocket.Port)
	case probe.GRPC != nil:
		return c.connect(ctx, "", intstr.FromInt32(probe.GRPC.Port))
	default:
		return nil
	}
}

func (c *container) get(ctx context.Context, action *corev1.HTTPGetAction) error {
	address, err := c.address(action.Host, action.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if action.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address, nil)
	if err != nil {
		return err
	}
	if request.URL, err = request.URL.Parse(action.Path); err != nil {
		return err
	}
	for _, header := range action.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	// A kubelet does not verify the certificate, uses no proxy and does not follow to other hosts.
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", response.StatusCode)
	}
	return nil
}

func (c *container) connect(ctx context.Context, host string, port intstr.IntOrString) error {
	address, err := c.address(host, port)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *container) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = c.worker.ip.String()
	}
	number := port.IntValue()
	for _, known := range c.spec.Ports {
		if port.Type == intstr.String && known.Name == port.StrVal {
			number = int(known.ContainerPort)
		}
	}
	if number <= 0 {
		return "", fmt.Errorf("container %s has no port %q", c.spec.Name, port.String())
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

func seconds(n int32, otherwise int) time.Duration {
	if n == 0 {
		return time.Duration(otherwise) * time.Second
	}
	return time.Duration(n) * time.Second
}

func threshold(probe *corev1.Probe) int {
	if probe.FailureThreshold == 0 {
		return 3
	}
	return int(probe.FailureThreshold)
}
