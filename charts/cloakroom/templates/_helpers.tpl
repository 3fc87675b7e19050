{{/*
What names of objects begin with. There is room behind it for the longest ending, -operations. Under an alias this is one
of several in a parent chart, and the alias has to tell them apart.
*/}}
{{- define "cloakroom.fullname" -}}
{{- $name := .Release.Name -}}
{{- /* An alias may be written as names of objects may not. */ -}}
{{- $own := .Chart.Name | kebabcase | lower -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if or (ne $own "cloakroom") (not (contains "cloakroom" $name)) -}}
{{- $name = printf "%s-%s" ($name | trunc (int (sub 51 (len $own))) | trimSuffix "-") $own -}}
{{- end -}}
{{ $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* What tells these pods from others. It never changes: a Deployment's selector cannot. */}}
{{- define "cloakroom.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "cloakroom.labels" -}}
{{ include "cloakroom.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "cloakroom.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{/* The Secret that has the server's certificate; empty where it speaks http. */}}
{{- define "cloakroom.tlsSecret" -}}
{{- if .Values.tls.certManager.issuerRef -}}
{{ include "cloakroom.fullname" . }}-tls
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end }}

{{/* The name by which clients outside reach the server, where this chart knows it. */}}
{{- define "cloakroom.host" -}}
{{- if .Values.ingress.enabled -}}
{{ .Values.ingress.host }}
{{- else if .Values.gateway.enabled -}}
{{ .Values.gateway.host }}
{{- end -}}
{{- end }}

{{/* The API groups of built-in kinds, which a bare name stands for. The server knows the same ones. */}}
{{- define "cloakroom.builtInKinds" -}}
Pod: ""
Service: ""
ConfigMap: ""
ReplicationController: ""
Deployment: apps
StatefulSet: apps
DaemonSet: apps
ReplicaSet: apps
Job: batch
CronJob: batch
{{- end }}

{{/* What the server asks about owners, in a namespace or in all of them: list and watch say who exists, and get looks again. */}}
{{- define "cloakroom.ownerRules" -}}
{{- $builtIn := include "cloakroom.builtInKinds" . | fromYaml }}
{{- range $kind, $resource := .Values.ownerKinds }}
{{- $parts := regexSplit "\\." $kind 2 }}
- apiGroups: [{{ (eq (len $parts) 2) | ternary (last $parts) (get $builtIn $kind) | quote }}]
  resources: [{{ $resource | quote }}]
  verbs: [get, list, watch]
{{- end }}
{{- end }}

{{/* The container's environment: the chart's own, then extraEnv, which replaces what has the same name. */}}
{{- define "cloakroom.env" -}}
{{- $extra := list }}
{{- range .Values.extraEnv }}{{ $extra = append $extra .name }}{{ end }}
{{- range include "cloakroom.ownEnv" . | fromYamlArray }}
{{- if not (has .name $extra) }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cloakroom.ownEnv" -}}
- name: CLOAKROOM_LISTEN
  value: 0.0.0.0:10000
# Probes, metrics and the calls of `cloakroom ls`, away from the port that others can reach.
- name: CLOAKROOM_OPS_LISTEN
  value: 0.0.0.0:10001
- name: CLOAKROOM_UPLOAD_AUTH
  value: {{ .Values.uploadAuth | quote }}
{{- if .Values.acceptClusterTokens }}
- name: CLOAKROOM_ACCEPT_CLUSTER_TOKENS
  value: "true"
{{- end }}
{{- if eq .Values.uploadAuth "token" }}
- name: CLOAKROOM_UPLOAD_TOKEN_FILE
  value: /etc/cloakroom/tokens/upload-token
{{- end }}
{{- if .Values.adminToken }}
- name: CLOAKROOM_ADMIN_TOKEN_FILE
  value: /etc/cloakroom/tokens/admin-token
{{- end }}
- name: CLOAKROOM_LOG_FORMAT
  value: json
# The image of init-containers that `cloakroom submit` makes: this container's own.
- name: CLOAKROOM_FETCH_IMAGE
  value: {{ include "cloakroom.image" . | quote }}
- name: CLOAKROOM_OWNER_KINDS
  value: {{ keys .Values.ownerKinds | sortAlpha | join "," | quote }}
{{- with .Values.namespaces }}
- name: CLOAKROOM_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- /* With Roles alone a deleted namespace cannot be told from a lost role, so age has to end what was staged for it. */}}
{{- with .Values.maxAge | default (.Values.namespaces | empty | ternary "" "30d") }}
- name: CLOAKROOM_MAX_AGE
  value: {{ . | quote }}
{{- end }}
{{- with include "cloakroom.host" . }}
# The server does not see that the way to it is https: tickets would have URLs that begin with http.
- name: CLOAKROOM_PUBLIC_URL
  value: https://{{ . }}
{{- end }}
{{- with .Values.store }}
{{- with .url }}
- name: CLOAKROOM_STORE
  value: {{ . | quote }}
{{- end }}
{{- with .endpoint }}
- name: CLOAKROOM_STORE_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .region }}
- name: CLOAKROOM_STORE_REGION
  value: {{ . | quote }}
{{- end }}
{{- with .account }}
- name: CLOAKROOM_STORE_ACCOUNT
  value: {{ . | quote }}
{{- end }}
{{- with .user }}
- name: CLOAKROOM_STORE_USER
  value: {{ . | quote }}
{{- end }}
{{- if .allowHttp }}
- name: CLOAKROOM_STORE_ALLOW_HTTP
  value: "true"
{{- end }}
{{- if .caSecret }}
- name: CLOAKROOM_STORE_CA
  value: /etc/cloakroom/store-ca/ca.crt
{{- end }}
{{- if and .existingSecret (hasPrefix "gs://" .url) }}
- name: GOOGLE_APPLICATION_CREDENTIALS
  value: /etc/cloakroom/store-credentials/credentials.json
{{- else if .existingSecret }}
{{- $secret := .existingSecret }}
{{- range ternary (list "AZURE_STORAGE_KEY") (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY") (hasPrefix "az://" .url) }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret | quote }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- if include "cloakroom.tlsSecret" . }}
- name: CLOAKROOM_TLS_CERT
  value: /etc/cloakroom/tls/tls.crt
- name: CLOAKROOM_TLS_KEY
  value: /etc/cloakroom/tls/tls.key
{{- end }}
{{- end }}

{{- /* The Secret with the tokens that the server reads; empty if it reads none. */}}
{{- define "cloakroom.tokensSecret" -}}
{{- if or (eq .Values.uploadAuth "token") .Values.adminToken }}{{ .Values.tokens.existingSecret }}{{ end }}
{{- end }}
