{{/* What the server's pod has of Secrets and volumes, beside what extraVolumes and extraVolumeMounts add. */}}
{{- define "cloakroom.ownMounts" -}}
- name: data
  mountPath: /var/lib/cloakroom
# Folders, not subPaths, so that the server sees a changed token or certificate without a restart.
{{- if include "cloakroom.tokensSecret" . }}
- name: tokens
  mountPath: /etc/cloakroom/tokens
  readOnly: true
{{- end }}
{{- if include "cloakroom.tlsSecret" . }}
- name: tls
  mountPath: /etc/cloakroom/tls
  readOnly: true
{{- end }}
{{- if .Values.store.caSecret }}
- name: store-ca
  mountPath: /etc/cloakroom/store-ca
  readOnly: true
{{- end }}
{{- if and .Values.store.existingSecret (hasPrefix "gs://" .Values.store.url) }}
- name: store-credentials
  mountPath: /etc/cloakroom/store-credentials
  readOnly: true
{{- end }}
{{- end }}

{{- define "cloakroom.ownVolumes" -}}
- name: data
{{- if .Values.store.url }}
  # The ledger is made anew from the bucket at each start.
  emptyDir: {}
{{- else }}
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (include "cloakroom.fullname" .) | quote }}
{{- end }}
# 288 is 0440: the group of fsGroup reads them.
{{- with include "cloakroom.tokensSecret" . }}
- name: tokens
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
{{- end }}
{{- with include "cloakroom.tlsSecret" . }}
- name: tls
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
{{- end }}
{{- with .Values.store.caSecret }}
- name: store-ca
  secret:
    secretName: {{ . | quote }}
    items: [{ key: ca.crt, path: ca.crt }]
    defaultMode: 288
{{- end }}
{{- if and .Values.store.existingSecret (hasPrefix "gs://" .Values.store.url) }}
- name: store-credentials
  secret:
    secretName: {{ .Values.store.existingSecret | quote }}
    items: [{ key: credentials.json, path: credentials.json }]
    defaultMode: 288
{{- end }}
{{- end }}

{{- /* The Secret with the tokens that the server reads; empty if it reads none. */}}
{{- define "cloakroom.tokensSecret" -}}
{{- if or (eq .Values.uploadAuth "token") .Values.adminToken .Values.webhdfs }}{{ .Values.tokens.existingSecret }}{{ end }}
{{- end }}
