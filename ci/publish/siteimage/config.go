package siteimage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/publish/inputs"
)

// Ports below this one need root. From there on the image runs as an ID that no base image gives to anybody.
const (
	firstFreePort  = 1024
	unprivilegedID = "65532:65532"
)

// engineHistory marks what an engine's exporter adds to a history. Source: moby/buildkit, exporter/containerimage/writer.go,
// normalizeLayersAndHistory.
const engineHistory = "buildkit.exporter.image.v0"

// LayerHistory begins the entry of each layer of the site in an image's history.
const LayerHistory = "castle publish-blog: "

// configure makes the image's configuration, all but the file system: the base's, with what makes it the site's server.
func configure(o Options, ours []*layer) (*v1.ConfigFile, error) {
	base, err := o.Base.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("base image: %w", err)
	}
	// Only what describes the platform and the history: the rest of the base's record is about the machine that built it.
	config := &v1.ConfigFile{
		Architecture: base.Architecture, OS: base.OS, Variant: base.Variant, OSVersion: base.OSVersion,
		Created: v1.Time{Time: o.Created.UTC().Truncate(time.Second)},
		History: slices.Clone(base.History), Config: *base.Config.DeepCopy(),
	}
	for i := range config.History {
		// An engine that exports a base writes the time of its own pull here, and, where the base has no history, from
		// which image it first pulled the layer, which may have been another one with the same layer.
		config.History[i].Created = v1.Time{}
		if config.History[i].Comment == engineHistory {
			config.History[i] = v1.History{}
		}
	}

	// The base's entry point may edit the configuration at start, which a read-only root file system forbids.
	// "-e stderr" because nginx otherwise tries the log file that was compiled in before it reads its configuration.
	c := &config.Config
	c.Entrypoint = []string{"nginx", "-e", "stderr", "-g", "daemon off;"}
	c.Cmd, c.Healthcheck, c.Hostname, c.Image, c.Volumes, c.WorkingDir = nil, nil, "", "", nil, ""
	c.StopSignal = "SIGQUIT" // nginx finishes the requests it has
	c.ExposedPorts = map[string]struct{}{strconv.Itoa(o.Port) + "/tcp": {}}
	c.User = ""
	if o.Port >= firstFreePort {
		c.User = unprivilegedID
	}
	c.Labels, err = labels(o, c.Labels)
	if err != nil {
		return nil, err
	}
	for _, l := range ours {
		config.History = append(config.History, v1.History{
			Created: config.Created, CreatedBy: LayerHistory + l.report.Name,
		})
	}
	return config, nil
}

// keyHugoVersion is the label for the version of Hugo, which follows from the image that built the site.
const keyHugoVersion = "net.tazlab.castle.hugo.version"

func labels(o Options, inherited map[string]string) (map[string]string, error) {
	digest := o.BaseDigest
	if digest == "" {
		own, err := o.Base.Digest()
		if err != nil {
			return nil, fmt.Errorf("base image: %w", err)
		}
		digest = own.String()
	}
	// The base's own title, source and version would be wrong for the site: those not given are removed.
	labels := map[string]string{}
	for key, value := range inherited {
		labels[key] = value
	}
	maps.Copy(labels, o.Inputs.Annotations())
	if o.Hugo.Version != "" {
		labels[keyHugoVersion], labels[inputs.KeyHugoFrom] = o.Hugo.Version, o.Hugo.From
	}
	for key, value := range map[string]string{
		"title": o.Title, "revision": o.Revision, "source": o.Source, "version": o.Version,
		"created": o.Created.UTC().Format(time.RFC3339), "base.name": o.BaseName, "base.digest": digest,
		"description": "", "url": "", "documentation": "", "licenses": "", "vendor": "", "authors": "", "ref.name": "",
	} {
		key = "org.opencontainers.image." + key
		if value == "" {
			delete(labels, key)
		} else {
			labels[key] = value
		}
	}
	return labels, nil
}
