package siteimage

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Report says what an image is made of, in the order of its layers.
type Report struct {
	Digest   string  `json:"digest"`   // of the image's manifest
	Platform string  `json:"platform"` // "linux/amd64"
	Layers   []Layer `json:"layers"`
}

// Layer is one row of a Report.
type Layer struct {
	Name       string `json:"name"`            // "base 1/7", "server", "assets", "pages 3/16", "feeds"
	Files      int    `json:"files,omitempty"` // without the compressed variants; 0 for the base
	Bytes      int64  `json:"bytes,omitempty"` // of the tar; 0 for the base
	Compressed int64  `json:"compressed"`      // bytes, as they are sent
	Digest     string `json:"digest"`          // of the compressed bytes
	DiffID     string `json:"diffId"`          // digest of the tar
	Unchanged  bool   `json:"unchanged"`       // taken from the base or the cache
}

func (r *Report) name(image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	r.Digest, r.Platform = digest.String(), config.Platform().String()
	return nil
}
