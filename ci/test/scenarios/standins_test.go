//go:build linux

package scenarios

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"go.yaml.in/yaml/v3"

	gitopstemplate "tazlab.net/castle/gitops-template"

	"tazlab.net/castle/ci/test/kubetest"
)

// workload is all that most stand-ins install: pods that even a restricted namespace takes.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: stand-in
          image: ghcr.io/stand-in/{{ .Chart.Name }}:{{ .Chart.Version }}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// way is Traefik's stand-in: what its real chart makes of the values that the repository gives it.
const way = workload + `
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  annotations: {{ toYaml .Values.service.annotations | nindent 4 }}
spec:
  type: {{ .Values.service.spec.type }}
  externalTrafficPolicy: {{ .Values.service.spec.externalTrafficPolicy }}
  selector: {app: {{ .Release.Name }}}
  ports:
    {{- range $name, $port := .Values.ports }}
    - {name: {{ $name }}, port: {{ $port.exposedPort }}, targetPort: {{ $port.port }}}
    {{- end }}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  name: {{ .Values.ingressClass.name }}
spec:
  controller: traefik.io/ingress-controller
`

// standIns are the charts of a rendered repository, none of them the real one: what they install is little, and their kinds are the
// projects' own.
func (w *world) standIns() map[string]standIn {
	return map[string]standIn{
		"traefik":      {templates: way},
		"cert-manager": {templates: workload, definitions: kubetest.Definitions(w.t, "cert-manager", "_clusterissuers")},
		"prometheus":   {templates: workload}, "grafana": {templates: workload}, "dagger-helm": {templates: workload},
	}
}

type standIn struct {
	templates   string
	definitions []byte
}

// archive is the chart as a Helm repository has it.
func (s standIn) archive(name, version string) ([]byte, error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	files := tar.NewWriter(zipped)
	for _, file := range []struct{ name, text string }{
		{"Chart.yaml", fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %q\ndescription: A stand-in of the proving ground's tests.\n", name, version)},
		{"templates/all.yaml", s.templates},
		{"crds/all.yaml", string(s.definitions)},
	} {
		if file.text == "" {
			continue
		}
		if err := files.WriteHeader(&tar.Header{Name: name + "/" + file.name, Mode: 0o644, Size: int64(len(file.text))}); err != nil {
			return nil, err
		}
		if _, err := files.Write([]byte(file.text)); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return b.Bytes(), err
}

// serveCharts serves the stand-ins as a Helm repository in the world's network, in the versions that a repository asks for.
func (w *world) serveCharts(address string) {
	w.t.Helper()
	var pins struct {
		Charts map[string]struct{ Version string }
	}
	text, err := gitopstemplate.Files.ReadFile("pins.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &pins)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	mux := http.NewServeMux()
	for name, chart := range w.standIns() {
		version := pins.Charts[name].Version
		archive, err := chart.archive(name, version)
		if err != nil {
			w.t.Fatal(err)
		}
		file := name + "-" + version + ".tgz"
		fmt.Fprintf(&index, "  %s:\n    - {apiVersion: v2, name: %s, version: %q, digest: %x, urls: [%s]}\n", name, name, version, sha256.Sum256(archive), file)
		mux.HandleFunc("/"+file, func(response http.ResponseWriter, _ *http.Request) { _, _ = response.Write(archive) })
	}
	mux.HandleFunc("/index.yaml", func(response http.ResponseWriter, _ *http.Request) { _, _ = response.Write([]byte(index.String())) })
	listener, err := w.listen(address)
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { _ = server.Close() })
}
