{{- define "urdma.labels" -}}
app.kubernetes.io/name: urdma
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "urdma.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- /* urdma.json of every node: the wildcard address stands for the node's or the pod's. */ -}}
{{- define "urdma.config" -}}
{{- $port := dict "vdev" "udp" }}
{{- if eq .Values.wire "roce" }}
{{- $_ := set $port "protocol" "rocev2" }}
{{- else }}
{{- $_ := set $port "vdev" (ternary .Values.wire (printf "%s,port=%d" .Values.wire (int .Values.port)) (eq (int .Values.port) 30035)) }}
{{- end }}
{{- $_ := set $port (ternary "ipv6_address" "ipv4_address" .Values.ipv6) (ternary "::" "0.0.0.0" .Values.ipv6) }}
{{- if .Values.mtu }}
{{- $_ := set $port "mtu" (int .Values.mtu) }}
{{- end }}
{{- $config := dict "socket" (printf "%s/urdmad.sock" .Values.directories.socket) "socket_group" (printf "%d" (int64 .Values.group)) "ports" (list $port) }}
{{- if eq (printf "%v" .Values.workers) "auto" }}
{{- $_ := set $config "workers" "auto" }}
{{- else if gt (int .Values.workers) 1 }}
{{- $workers := list }}
{{- range until (int .Values.workers) }}
{{- $workers = append $workers (dict "core" -1) }}
{{- end }}
{{- $_ := set $config "workers" $workers }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) $config | toPrettyJson }}
{{- end }}
