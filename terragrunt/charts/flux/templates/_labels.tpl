{{- define "flux.labels" -}}
app.kubernetes.io/part-of: flux
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
