{{- define "inline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The name of the StatefulSet: its pods' labels add 11 characters, of 63. */}}
{{- define "inline.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "inline.headless" -}}
{{ include "inline.fullname" . }}-nodes
{{- end }}

{{- define "inline.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "inline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "inline.selectorLabels" -}}
app.kubernetes.io/name: {{ include "inline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "inline.nodeLabels" -}}
{{ include "inline.selectorLabels" . }}
app.kubernetes.io/component: node
{{- end }}

{{- define "inline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "inline.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "inline.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "inline.keySecret" -}}
{{ default (printf "%s-key" (include "inline.fullname" .)) .Values.nodes.existingSecret }}
{{- end }}

{{/* The Secret with the tokens; empty: there are none. */}}
{{- define "inline.tokenSecret" -}}
{{- if .Values.api.existingSecret }}
{{- .Values.api.existingSecret }}
{{- else if .Values.api.tokens }}
{{- include "inline.fullname" . }}-tokens
{{- end }}
{{- end }}

{{/* A setting as text: `list $ KEY DEFAULT`.  Numbers of YAML are floats. */}}
{{- define "inline.setting" -}}
{{- $value := dig (index . 1) (index . 2) (index . 0).Values.settings }}
{{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}
{{- int64 $value }}
{{- else }}
{{- $value }}
{{- end }}
{{- end }}

{{/* MiB of a size of inline.conf(5), rounded up: `list $ KEY DEFAULT`. */}}
{{- define "inline.mebibytes" -}}
{{- $text := include "inline.setting" . | lower }}
{{- $number := regexFind "^[0-9]+" $text | int64 }}
{{- if hasSuffix "g" $text }}
{{- mul $number 1024 }}
{{- else if hasSuffix "m" $text }}
{{- $number }}
{{- else if hasSuffix "k" $text }}
{{- div (add $number 1023) 1024 }}
{{- else }}
{{- div (add $number 1048575) 1048576 }}
{{- end }}
{{- end }}

{{/* Memory of a node, in MiB: its programs, its engine, what the kernel keeps of
     files, and all the cells that there may be at one time. */}}
{{- define "inline.memory" -}}
{{- $cells := include "inline.setting" (list . "IL_CELLS" 8) | int64 }}
{{- $runs := include "inline.setting" (list . "IL_API_CELLS" 4) | int64 }}
{{- $sessions := include "inline.setting" (list . "IL_API_SESSIONS" 8) | int64 }}
{{- $cell := include "inline.mebibytes" (list . "IL_MEMORY" "256m") | int64 }}
{{- $pip := include "inline.mebibytes" (list . "IL_TUNE_PIP_MEMORY" "512m") | int64 }}
{{- $api := include "inline.mebibytes" (list . "IL_API_MEMORY" "256m") | int64 }}
{{- add 1024 (mul $cells $cell) (max 0 (sub $pip $cell)) (mul (add $runs $sessions) $api) }}
{{- end }}

{{/* Seconds from SIGTERM to the end: runs have IL_STOP_SECONDS, their cells and the
     engine 90 more, as everywhere in Inline. */}}
{{- define "inline.stopSeconds" -}}
{{- add 90 (include "inline.setting" (list . "IL_STOP_SECONDS" 20) | float64 | ceil | int64) }}
{{- end }}

{{/* How many nodes share the slots that no line names.  A node that is added is
     none of them, until the operator says so: it has nobody's files. */}}
{{- define "inline.settled" -}}
{{- $count := int .Values.replicaCount }}
{{- $settled := $count }}
{{- $table := lookup "v1" "ConfigMap" .Release.Namespace (include "inline.headless" .) }}
{{- if not (kindIs "invalid" .Values.nodes.settled) }}
{{- $settled = int .Values.nodes.settled }}
{{- if gt $settled $count }}
{{- fail (printf "nodes.settled: %d nodes share the slots, but replicaCount is %d" $settled $count) }}
{{- end }}
{{- else if $table }}
{{- $settled = int $table.data.settled }}
{{- if gt $settled $count }}
{{- fail (printf "replicaCount: %d nodes have people; move those of node %d away first, and say so with nodes.settled (README.md, \"Another number of nodes\")" $settled $count) }}
{{- end }}
{{- end }}
{{- $settled }}
{{- end }}

{{- define "inline.table" -}}
{{- $name := include "inline.fullname" . }}
{{- $domain := printf "%s.%s.svc.%s" (include "inline.headless" .) .Release.Namespace .Values.nodes.clusterDomain }}
{{- $settled := include "inline.settled" . | int }}
{{- $names := dict }}
{{- range $i := until (int .Values.replicaCount) }}
{{- $_ := set $names (printf "%s-%d" $name $i) true -}}
node {{ $name }}-{{ $i }} {{ $name }}-{{ $i }}.{{ $domain }}{{ if ge $i $settled }} joining{{ end }}
{{ end }}
{{- range $line := splitList "\n" .Values.nodes.slots }}
{{- if trim $line }}
{{- $node := last (splitList " " (trim $line)) }}
{{- if not (hasKey $names $node) }}
{{- fail (printf "nodes.slots: %s is none of the %d nodes" $node (int $.Values.replicaCount)) }}
{{- end -}}
{{ trim $line }}
{{ end }}
{{- end }}
{{- end }}

{{/* What the schema cannot say, since it is about two values. */}}
{{- define "inline.check" -}}
{{- if ne (empty .Values.discord.publicKey) (empty .Values.discord.applicationId) }}
{{- fail "discord: publicKey and applicationId belong together" }}
{{- end }}
{{- if and .Values.api.tokens .Values.api.existingSecret }}
{{- fail "api.tokens: api.existingSecret has them already" }}
{{- end }}
{{- if and .Values.api.expose (not (include "inline.tokenSecret" .)) }}
{{- fail "api.expose: whoever reaches the APIs runs code, so api.tokens or api.existingSecret has to be set" }}
{{- end }}
{{- if and .Values.snekbox.enabled (include "inline.tokenSecret" .) (not .Values.snekbox.tokenSecret) }}
{{- fail "snekbox.tokenSecret: where api has tokens, nodes ask the sidecar for one, too" }}
{{- end }}
{{- if and .Values.backup.enabled (ne .Values.persistence.accessMode "ReadWriteOnce") }}
{{- fail "backup.enabled: its pod mounts the node's claim beside the node, so persistence.accessMode has to be ReadWriteOnce" }}
{{- end }}
{{- end }}

{{/* The paths that an ingress brings. */}}
{{- define "inline.apiPaths" -}}
{{- list "/eval" "/v1" "/api/v2" "/librechat" "/mcp" "/versions" "/openapi.json" "/docs" "/health" | toJson }}
{{- end }}

{{/* A pod of nobody's: no rights, nothing to write. */}}
{{- define "inline.restricted" -}}
runAsNonRoot: true
runAsUser: 33
runAsGroup: 33
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}
