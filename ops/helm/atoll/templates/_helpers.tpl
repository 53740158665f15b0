{{- define "atoll.labels" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "atoll.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* What the chart sets itself, by which value: a second one of the same name would win, here and not there. */}}
{{- define "atoll.checkedSettings" -}}
{{- $own := dict
  "ATOLL_DATA_DIR" "node.dataDir" "ATOLL_CACHE_DIR" "node.cacheDir" "ATOLL_NODE_ADDRESS" "node.port"
  "ATOLL_PORT" "control.service.port" "ATOLL_DOMAIN" "control.domain" "ATOLL_TRUST_FORWARDED" "control.trustForwarded"
  "ATOLL_DATABASE_URL" "secrets.database" "ATOLL_HOST" "" "ATOLL_NODE_SERVICE_ACCOUNT" "" }}
{{- if .Values.secrets.store }}
{{- $own = merge (dict "ATOLL_STORE_KEY_ID" "secrets.store" "ATOLL_STORE_SECRET" "secrets.store") $own }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if hasKey $own $name }}
{{- $where := get $own $name }}
{{- fail (printf "settings.%s can't be set: the chart sets it itself%s." $name (ternary "" (printf ", by the value %s" $where) (empty $where))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "atoll.storeKey" -}}
- name: ATOLL_STORE_KEY_ID
  valueFrom: { secretKeyRef: { name: {{ .Values.secrets.store }}, key: key-id } }
- name: ATOLL_STORE_SECRET
  valueFrom: { secretKeyRef: { name: {{ .Values.secrets.store }}, key: secret } }
{{- end }}

{{- define "atoll.settings" -}}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}

{{- /* Machines get single objects of the store to read and write, and no key of it. */}}
{{- define "atoll.nodeSettings" -}}
{{- range $name, $value := .Values.settings }}
{{- if not (hasPrefix "ATOLL_STORE" $name) }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{- define "atoll.nodePlace" -}}
- { name: ATOLL_DATA_DIR, value: {{ .Values.node.dataDir | quote }} }
- { name: ATOLL_CACHE_DIR, value: {{ .Values.node.cacheDir | quote }} }
{{- end }}

{{- define "atoll.nodeMounts" -}}
- { name: data, mountPath: {{ .Values.node.dataDir }} }
- { name: cache, mountPath: {{ .Values.node.cacheDir }} }
# A file system in memory that the pod mounts there has to be the machine's, for the next pod.
- { name: run, mountPath: /run/atoll, mountPropagation: Bidirectional }
- { name: dev, mountPath: /dev }
- { name: cgroup, mountPath: /sys/fs/cgroup }
{{- end }}

{{- define "atoll.nodeVolumes" -}}
- name: data
  hostPath: { path: {{ .Values.node.dataDir }}, type: DirectoryOrCreate }
- name: cache
  hostPath: { path: {{ .Values.node.cacheDir }}, type: DirectoryOrCreate }
- name: run
  hostPath: { path: /run/atoll, type: DirectoryOrCreate }
- name: dev
  hostPath: { path: /dev, type: Directory }
- name: cgroup
  hostPath: { path: /sys/fs/cgroup, type: Directory }
{{- end }}
