//go:build linux

package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// missingError is something that a pod refers to and that is not there: a kubelet waits for it.
type missingError struct{ what string }

func (e *missingError) Error() string { return e.what + " not found" }

// environment is a container's environment and arguments, with every $(NAME) in them replaced.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, has := e.values[name]; !has {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) list() []string {
	list := make([]string, len(e.names))
	for i, name := range e.names {
		list[i] = name + "=" + e.values[name]
	}
	return list
}

// expand replaces $(NAME) by a variable that is known; $$ is a dollar.
func (e *environment) expand(text string) string {
	var b strings.Builder
	for {
		dollar := strings.IndexByte(text, '$')
		if dollar < 0 || dollar == len(text)-1 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:dollar])
		rest := text[dollar+1:]
		if end := strings.IndexByte(rest, ')'); rest[0] == '(' && end > 0 {
			if value, has := e.values[rest[1:end]]; has {
				b.WriteString(value)
			} else {
				b.WriteString("$" + rest[:end+1])
			}
			text = rest[end+1:]
			continue
		}
		b.WriteByte('$')
		if rest[0] == '$' {
			rest = rest[1:]
		}
		text = rest
	}
}

func (e *environment) expandAll(texts []string) []string {
	expanded := make([]string, len(texts))
	for i, text := range texts {
		expanded[i] = e.expand(text)
	}
	return expanded
}

// environment resolves what a container's specification refers to.
func (w *worker) environment(connected *api, pod *corev1.Pod, spec *corev1.Container) (*environment, error) {
	e := &environment{values: map[string]string{}}
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("HOSTNAME", pod.Name)
	e.set("HOME", "/")
	e.set("KUBERNETES_SERVICE_HOST", w.agent.options.Service.String())
	e.set("KUBERNETES_SERVICE_PORT", "443")
	e.set("KUBERNETES_SERVICE_PORT_HTTPS", "443")
	for _, from := range spec.EnvFrom {
		values, err := valuesFrom(connected, pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, len(values))
		for name := range values {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			e.set(from.Prefix+name, values[name])
		}
	}
	for _, variable := range spec.Env {
		if variable.ValueFrom == nil {
			e.set(variable.Name, e.expand(variable.Value))
			continue
		}
		value, has, err := w.valueFrom(connected, pod, spec, variable.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if has {
			e.set(variable.Name, value)
		}
	}
	return e, nil
}

func valuesFrom(connected *api, namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	values := map[string]string{}
	switch {
	case from.SecretRef != nil:
		data, err := secretData(connected, namespace, from.SecretRef.Name)
		if err != nil && !isTrue(from.SecretRef.Optional) {
			return nil, err
		}
		for key, value := range data {
			values[key] = string(value)
		}
	case from.ConfigMapRef != nil:
		data, err := configMapData(connected, namespace, from.ConfigMapRef.Name)
		if err != nil && !isTrue(from.ConfigMapRef.Optional) {
			return nil, err
		}
		for key, value := range data {
			values[key] = string(value)
		}
	}
	return values, nil
}

func (w *worker) valueFrom(connected *api, pod *corev1.Pod, spec *corev1.Container, from *corev1.EnvVarSource) (value string, has bool, err error) {
	key := func(data map[string][]byte, err error, kind, name, key string, optional *bool) (string, bool, error) {
		if err == nil {
			if value, has := data[key]; has {
				return string(value), true, nil
			}
			err = &missingError{fmt.Sprintf("key %s of %s %s/%s", key, kind, pod.Namespace, name)}
		}
		if isTrue(optional) {
			return "", false, nil
		}
		return "", false, err
	}
	switch {
	case from.FieldRef != nil:
		value, err := w.field(pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := w.resource(spec, from.ResourceFieldRef)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		data, err := secretData(connected, pod.Namespace, from.SecretKeyRef.Name)
		return key(data, err, "secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		data, err := configMapData(connected, pod.Namespace, from.ConfigMapKeyRef.Name)
		return key(data, err, "config map", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	default:
		return "", false, nil
	}
}

// field is one field of the downward API.
func (w *worker) field(pod *corev1.Pod, path string) (string, error) {
	if name, bracket, ok := strings.Cut(path, "['"); ok {
		key := strings.TrimSuffix(bracket, "']")
		if name == "metadata.labels" {
			return pod.Labels[key], nil
		}
		return pod.Annotations[key], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return pairs(pod.Labels), nil
	case "metadata.annotations":
		return pairs(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return w.node.Address.String(), nil
	case "status.podIP", "status.podIPs":
		return w.ip.String(), nil
	default:
		return "", fmt.Errorf("field %s is not known to the downward API", path)
	}
}

func pairs(of map[string]string) string {
	lines := make([]string, 0, len(of))
	for key, value := range of {
		lines = append(lines, key+"="+strconv.Quote(value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// resource is a limit or request of the container, or what the node has.
func (w *worker) resource(spec *corev1.Container, selector *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(selector.Resource, ".")
	list := spec.Resources.Limits
	if kind == "requests" {
		list = spec.Resources.Requests
	}
	quantity, has := list[corev1.ResourceName(name)]
	if !has && kind == "limits" {
		quantity = capacity(w.node.Node)[corev1.ResourceName(name)]
	}
	divisor := selector.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	// Rounded up, as a kubelet does: half a CPU is one processor for GOMAXPROCS.
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt((quantity.MilliValue()+divisor.MilliValue()-1)/divisor.MilliValue(), 10), nil
	}
	return strconv.FormatInt((quantity.Value()+divisor.Value()-1)/divisor.Value(), 10), nil
}

func secretData(connected *api, namespace, name string) (map[string][]byte, error) {
	secret, err := connected.secrets.Secrets(namespace).Get(name)
	if err != nil {
		return nil, &missingError{fmt.Sprintf("secret %s/%s", namespace, name)}
	}
	return secret.Data, nil
}

func configMapData(connected *api, namespace, name string) (map[string][]byte, error) {
	config, err := connected.configMaps.ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil, &missingError{fmt.Sprintf("config map %s/%s", namespace, name)}
	}
	data := make(map[string][]byte, len(config.Data)+len(config.BinaryData))
	for key, value := range config.Data {
		data[key] = []byte(value)
	}
	for key, value := range config.BinaryData {
		data[key] = value
	}
	return data, nil
}

func isTrue(b *bool) bool { return b != nil && *b }
