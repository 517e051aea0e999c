package sitegen

import "strings"

var sections = strings.Fields(`
	automation backups caching clusters containers databases debugging deployment documentation networking
	observability operations packaging pipelines platforms releases security storage testing tooling
`)

var tags = strings.Fields(`
	alerting ansible argo bash ceph certificates ci dagger debian dns docker etcd firewall flux git gitops go grafana
	haproxy helm hugo ingress kubernetes linux logging metallb nginx oci opentofu postgres prometheus proxmox rust
	secrets sqlite ssh talos terraform tls yaml
`)

// vocabulary stands roughly in order of frequency: see word.
var vocabulary = strings.Fields(`
	the a of to and in is it that for with as on not by this which from be at one or are when what we if its every
	before after only there then where than more still also never until both each same other first last next new old
	file page image layer commit change cluster node service server request answer build test run name tag branch
	digest manifest registry repository container volume network address port certificate key secret token user group
	process thread memory disk cache log metric alert dashboard query index table row column record schema backup copy
	restore release version package module library function value field list map tree graph edge path folder link
	header body cookie session client proxy gateway router switch bridge tunnel firewall rule policy role account
	controller operator resource event condition state status deadline timeout retry pause queue worker job step stage
	pipeline script command flag argument option default error warning message report summary result output input
	reads writes sends receives opens closes starts stops waits checks finds keeps holds moves turns shows says asks
	takes gives makes builds pushes pulls signs verifies compares counts measures fails passes returns resolves
	mounts binds listens serves renders parses encodes compresses splits joins sorts filters matches replaces deletes
	small large slow fast early late clean dirty empty full local remote public private static dynamic stable strict
	simple plain narrow wide deep shallow quiet idle ready busy safe known missing broken stale fresh pinned declared
	always often seldom again together alone twice later already exactly nearly mostly enough between during without
	morning evening hour minute second day week month year machine laptop rack cable power room window door wall stone
	gate tower bridge road river garden letter book shelf paper pencil desk lamp clock map rope ladder hammer nail
`)
