{{- define "stet.labels" -}}
app.kubernetes.io/name: stet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stet.environment" -}}
- name: STET_STORE
  value: {{ required "store: the address of the database is needed" .Values.store | quote }}
{{- if .Values.blobs }}
- name: STET_BLOBS
  value: {{ .Values.blobs | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "stet.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}
