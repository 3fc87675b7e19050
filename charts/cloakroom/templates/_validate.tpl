{{/* What is wrong with the values together; values.schema.json says what is wrong with each alone. All of it is said at once. */}}
{{- define "cloakroom.validate" -}}
{{- $wrong := list -}}
{{- if not .Values.image.repository -}}
{{- $wrong = append $wrong "image.repository is missing: set it to the name of the image in your registry, such as registry.example.com/cloakroom" -}}
{{- end -}}
{{- range $name, $text := dict "image.repository" .Values.image.repository "global.imageRegistry" .Values.global.imageRegistry -}}
{{- if contains "://" $text -}}
{{- $wrong = append $wrong (printf "%s begins with a scheme, which the name of an image does not have: write %s" $name (splitList "://" $text | last)) -}}
{{- end -}}
{{- end -}}
{{- if not (or .Values.image.digest .Values.image.tag) -}}
{{- $wrong = append $wrong "image.digest is missing: set it to the digest of the image that you pushed, sha256:… (or set image.tag, which can be moved to another image)" -}}
{{- end -}}
{{- if and .Values.acceptClusterTokens (ne .Values.uploadAuth "kubernetes") -}}
{{- $wrong = append $wrong "acceptClusterTokens is for uploadAuth kubernetes only: leave it out, or choose that" -}}
{{- end -}}
{{- $keys := list -}}
{{- if eq .Values.uploadAuth "token" }}{{ $keys = append $keys "upload-token" }}{{ end -}}
{{- if .Values.adminToken }}{{ $keys = append $keys "admin-token" }}{{ end -}}
{{- if .Values.webhdfs }}{{ $keys = append $keys "webhdfs-keys" }}{{ end -}}
{{- if and $keys (not .Values.tokens.existingSecret) -}}
{{- $wrong = append $wrong (printf "tokens.existingSecret is missing: name a Secret with the key %s" (join " and the key " $keys)) -}}
{{- end -}}
{{- with .Values.tls -}}
{{- if and .existingSecret .certManager.issuerRef -}}
{{- $wrong = append $wrong "tls.existingSecret and tls.certManager.issuerRef are both set: keep the first for a certificate of your own, or the second for one that cert-manager makes" -}}
{{- end -}}
{{- if and (or .certManager.dnsNames .certManager.ipAddresses) (not .certManager.issuerRef) -}}
{{- $wrong = append $wrong "tls.certManager.issuerRef is missing: name the issuer that signs the certificate, such as { name: my-ca, kind: ClusterIssuer }" -}}
{{- end -}}
{{- end -}}
{{- with .Values.store -}}
{{- if and (hasPrefix "az://" .url) (not .account) -}}
{{- $wrong = append $wrong "store.account is missing: name the storage account of the container of az://" -}}
{{- end -}}
{{- if and (contains "webhdfs://" .url) (not .user) -}}
{{- $wrong = append $wrong "store.user is missing: name the user of the folder of webhdfs://" -}}
{{- end -}}
{{- if and (hasPrefix "webhdfs://" .url) (not .allowHttp) -}}
{{- $wrong = append $wrong "store.allowHttp is false, and webhdfs:// is without TLS: set it, or use swebhdfs://" -}}
{{- end -}}
{{- if and (hasPrefix "http://" .endpoint) (not .allowHttp) -}}
{{- $wrong = append $wrong "store.allowHttp is false, and store.endpoint is without TLS: set it, or write https://" -}}
{{- end -}}
{{- if and .url $.Values.persistence.existingClaim -}}
{{- $wrong = append $wrong "persistence.existingClaim is set: with store.url there is no volume" -}}
{{- end -}}
{{- if and (contains "webhdfs://" .url) .existingSecret -}}
{{- $wrong = append $wrong "store.existingSecret is set: HDFS takes no credentials" -}}
{{- end -}}
{{- if and (or .endpoint .region .account .user .existingSecret .caSecret) (not .url) -}}
{{- $wrong = append $wrong "store.url is missing: set it to the bucket and a prefix in it, such as s3://team/cloakroom" -}}
{{- end -}}
{{- end -}}
{{- range $name, $values := dict "ingress" .Values.ingress "gateway" .Values.gateway -}}
{{- if and $values.enabled (not $values.host) -}}
{{- $wrong = append $wrong (printf "%s.host is missing: set it to the name by which clients reach the server, such as cloakroom.example.com" $name) -}}
{{- end -}}
{{- if and $values.enabled (contains "*" $values.host) -}}
{{- $wrong = append $wrong (printf "%s.host has a *, and tickets begin with this name: write one name, such as cloakroom.example.com" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- $wrong = append $wrong "gateway.parentRefs is missing: name your Gateway, such as [{ name: gateway, namespace: gateway-system, sectionName: https }]" -}}
{{- end -}}
{{- if and .Values.ingress.enabled .Values.gateway.enabled (ne .Values.ingress.host .Values.gateway.host) -}}
{{- $wrong = append $wrong "ingress.host and gateway.host differ: tickets begin with one name, so set both to the same" -}}
{{- end -}}
{{- with .Values.service -}}
{{- if and .loadBalancerClass (ne .type "LoadBalancer") -}}
{{- $wrong = append $wrong "service.loadBalancerClass is for service.type LoadBalancer only: leave it out, or choose that" -}}
{{- end -}}
{{- if and .loadBalancerSourceRanges (ne .type "LoadBalancer") -}}
{{- $wrong = append $wrong "service.loadBalancerSourceRanges is for service.type LoadBalancer only: leave it out, or choose that" -}}
{{- end -}}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") -}}
{{- $wrong = append $wrong "service.externalTrafficPolicy is for service.type NodePort and LoadBalancer only: leave it out, or choose one of them" -}}
{{- end -}}
{{- end -}}
{{- with .Values.serviceAccount -}}
{{- if not (or .create .name) -}}
{{- $wrong = append $wrong "serviceAccount.name is missing: with serviceAccount.create false, name an account that exists in the release's namespace" -}}
{{- end -}}
{{- if and .annotations (not .create) -}}
{{- $wrong = append $wrong "serviceAccount.annotations is set, and serviceAccount.create is false: annotate the account where it is made" -}}
{{- end -}}
{{- end -}}
{{- $wrong = concat $wrong (include "cloakroom.collisions" . | fromJsonArray) -}}
{{- if not .Values.ownerKinds -}}
{{- $wrong = append $wrong "ownerKinds is empty: name one kind or more that bundles can belong to, such as Pod: pods" -}}
{{- end -}}
{{- $builtIn := include "cloakroom.builtInKinds" . | fromYaml -}}
{{- range $kind, $resource := .Values.ownerKinds -}}
{{- if not (or (hasKey $builtIn $kind) (regexMatch "^[A-Z][A-Za-z0-9]*[.][a-z0-9]([-a-z0-9.]*[a-z0-9])?$" $kind)) -}}
{{- $wrong = append $wrong (printf "ownerKinds has %s, which is no built-in kind: write its API group behind it, as in SparkApplication.sparkoperator.k8s.io" $kind) -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (join "\n" $wrong) -}}
{{- end -}}
{{- end }}
