{{/*
Gives a value that is null its default, as if it were absent: Helm has removed it. Where any entries may be, as in
ownerKinds, null takes one away. Each template begins with this.
*/}}
{{- define "cloakroom.complete" -}}
{{- include "cloakroom.completeSection" (list .Values (.Files.Get "files/defaults.json" | fromJson)) -}}
{{- end }}

{{- define "cloakroom.completeSection" -}}
{{- $values := first . -}}
{{- range $key, $default := last . -}}
{{- if kindIs "invalid" (index $values $key) -}}
{{- $_ := set $values $key $default -}}
{{- else if kindIs "map" $default -}}
{{- include "cloakroom.completeSection" (list (index $values $key) $default) -}}
{{- end -}}
{{- end -}}
{{- end }}

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

{{/* A repository has a registry of its own if what is before its first slash cannot be a folder of one. */}}
{{- define "cloakroom.image" -}}
{{- $registry := .Values.global.imageRegistry | trimSuffix "/" -}}
{{- with .Values.image -}}
{{- if and $registry (not (regexMatch "^([^/]*[.:][^/]*|localhost)/" .repository)) }}{{ $registry }}/{{ end -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{/* Other charts have names in global.imagePullSecrets, or entries as a pod has them. */}}
{{- define "cloakroom.imagePullSecrets" -}}
{{- $names := list }}
{{- range concat .Values.imagePullSecrets .Values.global.imagePullSecrets }}
{{- if kindIs "string" . }}{{ $names = append $names . }}{{ else }}{{ $names = append $names .name }}{{ end }}
{{- end }}
{{- range uniq $names }}
- name: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "cloakroom.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "cloakroom.fullname" .) }}
{{- end }}

{{/* Entries whose values must be texts. YAML's numbers and booleans become the text that stands for them. */}}
{{- define "cloakroom.texts" -}}
{{- range $key, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{ $key | quote }}: {{ include "cloakroom.text" $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cloakroom.text" -}}
{{ if kindIs "string" . }}{{ quote . }}{{ else }}{{ toJson . | quote }}{{ end }}
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
{{- range .Values.extraEnv }}
- name: {{ .name | quote }}
{{- if not (kindIs "invalid" .value) }}
  value: {{ include "cloakroom.text" .value }}
{{- end }}
{{- with .valueFrom }}
  valueFrom:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What the server listens at. [::] is IPv4 as well; a node without IPv6 does not have it. */}}
{{- define "cloakroom.address" -}}
{{- with .Values.service -}}
{{ or (has "IPv6" .ipFamilies) (hasSuffix "DualStack" .ipFamilyPolicy) | ternary "[::]" "0.0.0.0" }}
{{- end -}}
{{- end }}

{{- define "cloakroom.ownEnv" -}}
{{- $address := include "cloakroom.address" . }}
- name: CLOAKROOM_LISTEN
  value: {{ printf "%s:10000" $address | quote }}
# Probes, metrics and the calls of `cloakroom ls`, away from the port that others can reach.
- name: CLOAKROOM_OPS_LISTEN
  value: {{ printf "%s:10001" $address | quote }}
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
{{- if .Values.webhdfs }}
- name: CLOAKROOM_WEBHDFS
  value: "true"
- name: CLOAKROOM_WEBHDFS_KEY_FILE
  value: /etc/cloakroom/tokens/webhdfs-keys
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

{{/* Without a volume another node can have the pod soon after its own one is lost. Kubernetes waits for five minutes otherwise. */}}
{{- define "cloakroom.tolerations" -}}
{{- $all := .Values.tolerations | default list -}}
{{- $known := list -}}
{{- range $all }}{{ $known = append $known .key }}{{ end -}}
{{- if .Values.store.url -}}
{{- range list "node.kubernetes.io/unreachable" "node.kubernetes.io/not-ready" -}}
{{- if not (has . $known) -}}
{{- $all = append $all (dict "key" . "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" 10) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $all | toJson -}}
{{- end }}

{{/* Where the server may reach its store: storePorts, and the ports in the addresses of the store. */}}
{{- define "cloakroom.storePorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.storePorts }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- $usual := dict "http:" 80 "https:" 443 "webhdfs:" 9870 "swebhdfs:" 9871 -}}
{{- range list .Values.store.endpoint .Values.store.url -}}
{{- $parts := splitList "/" . -}}
{{- $port := get $usual (first $parts) -}}
{{- if $port -}}
{{- range splitList "," (index $parts 2) -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default $port | int) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ $ports | uniq | toJson }}
{{- end }}
