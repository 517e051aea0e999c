{{- /* As flux install gives them, whose commands look for these: the instance is the namespace, whatever the release is called. */ -}}
{{- define "flux.labels" -}}
app.kubernetes.io/part-of: flux
app.kubernetes.io/instance: {{ .Release.Namespace }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* A Git repository can have the same objects, as one of flux bootstrap does: Flux takes them over then, and must not remove them together
with the repository's Kustomization, which they are there to remove. */ -}}
{{- define "flux.annotations" -}}
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end -}}

{{- /* The controllers that apply something, as subjects of a binding. */ -}}
{{- define "flux.appliers" -}}
{{- range $name, $controller := .Values.controllers }}
{{- if $controller.applies }}
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end }}
{{- end -}}
