package siteheaders

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/publish/site/builtsite"
)

// Headers are values of HTTP headers; an empty one is not sent.
type Headers struct {
	Mode                  string `json:"mode"` // fitted, strict, off or own
	ContentSecurityPolicy string `json:"contentSecurityPolicy,omitempty"`
	FrameOptions          string `json:"frameOptions,omitempty"` // X-Frame-Options
	OpenerPolicy          string `json:"openerPolicy,omitempty"` // Cross-Origin-Opener-Policy
	PermissionsPolicy     string `json:"permissionsPolicy,omitempty"`
	// Weak says, a sentence each, what of a fitted policy protects little, and which of the site's files need it.
	Weak []string `json:"weak,omitempty"`
}

// StrictHeaders suit a site that loads nothing from elsewhere and has no code or style in its pages; pictures may stand
// in its styles as data.
func StrictHeaders() Headers {
	return Headers{
		Mode:                  string(Strict),
		ContentSecurityPolicy: needs{}.policy(),
		FrameOptions:          "DENY",
		OpenerPolicy:          "same-origin",
		PermissionsPolicy:     needs{}.permissions(),
	}
}

// Make returns the headers for the site in a folder. Only the mode Fitted reads it. baseURL is the address that the
// site is served at; empty: the host that builtsite.AddressOf finds. cacheDir is a folder that keeps between builds what was
// found in each file; empty: none.
func Make(ctx context.Context, mode Mode, dir, baseURL, cacheDir string) (Headers, error) {
	strict := StrictHeaders()
	switch mode {
	case Strict:
		return strict, nil
	case Off:
		return Headers{Mode: string(Off)}, nil
	case Fitted:
		return fit(ctx, dir, baseURL, cacheDir)
	}
	own := strict
	own.Mode, own.ContentSecurityPolicy = mode.name(), string(mode)
	if mode.has("frame-ancestors") {
		own.FrameOptions = "" // where both are sent, old browsers would follow the other one
	}
	return own, nil
}

func fit(ctx context.Context, dir, baseURL, cacheDir string) (Headers, error) {
	site, err := builtsite.Open(dir, baseURL)
	if err != nil {
		return Headers{}, fmt.Errorf("fit headers to the site: %w", err)
	}
	found, err := collect(ctx, site, cacheDir)
	if err != nil {
		return Headers{}, fmt.Errorf("fit headers to the site: %w", err)
	}
	found.fitBuffer()
	headers := StrictHeaders()
	headers.Mode = string(Fitted)
	headers.ContentSecurityPolicy = found.policy()
	headers.PermissionsPolicy = found.permissions()
	headers.Weak = found.weak()
	if found.has(frameAncestors) {
		headers.FrameOptions = "SAMEORIGIN"
	}
	if found.has(popups) {
		headers.OpenerPolicy = "same-origin-allow-popups"
	}
	return headers, nil
}
