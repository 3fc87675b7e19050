{{/* Names that the chart itself gives, or that are there twice. Kubernetes refuses them, or one hides the other. */}}
{{- define "cloakroom.collisions" -}}
{{- $wrong := list -}}
{{- $volumes := list -}}
{{- range include "cloakroom.ownVolumes" . | fromYamlArray }}{{ $volumes = append $volumes .name }}{{ end -}}
{{- $paths := list -}}
{{- range include "cloakroom.ownMounts" . | fromYamlArray }}{{ $paths = append $paths .mountPath }}{{ end -}}
{{- range list
    (list "extraVolumes" "name" $volumes)
    (list "extraVolumeMounts" "mountPath" $paths)
    (list "initContainers" "name" (list "cloakroom"))
    (list "extraEnv" "name" list) -}}
{{- $name := index . 0 }}{{ $field := index . 1 }}{{ $own := index . 2 -}}
{{- $seen := list -}}
{{- range get $.Values $name -}}
{{- $taken := get . $field -}}
{{- if eq $field "mountPath" }}{{ $taken = clean $taken }}{{ end -}}
{{- if has $taken $own -}}
{{- $wrong = append $wrong (printf "%s has %s, which the chart itself has: choose another %s" $name $taken $field) -}}
{{- else if has $taken $seen -}}
{{- $wrong = append $wrong (printf "%s has %s twice: keep one, or choose another %s" $name $taken $field) -}}
{{- end -}}
{{- $seen = append $seen $taken -}}
{{- end -}}
{{- end -}}
{{- range list
    (list "podLabels" .Values.podLabels "cloakroom.selectorLabels")
    (list "monitoring.labels" .Values.monitoring.labels "cloakroom.labels") -}}
{{- $name := first . -}}
{{- $own := include (last .) $ | fromYaml -}}
{{- range $key, $value := index . 1 -}}
{{- if and (hasKey $own $key) (not (kindIs "invalid" $value)) -}}
{{- $wrong = append $wrong (printf "%s has %s, which the chart itself sets: leave it out" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toJson $wrong }}
{{- end }}
