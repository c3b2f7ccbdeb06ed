//go:build deploy

package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// These modules define the custom objects.
const (
	prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	keda               = "github.com/kedacore/keda/v2@v2.16.1"
)

// schemaLocation finds the schema of a kind in the folder of schemas. It has the form that kubeconform
// reads.
const schemaLocation = "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"

// schemas returns a folder with a JSON schema for each kind of object. A schema allows no field that
// it does not name, as the API server does for `kubectl apply --validate=strict`.
var schemas = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(self), "schemas") // go test removes it
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	text, err := os.ReadFile("../tools/kubernetes/version")
	if err != nil {
		return "", err
	}
	kubernetes := "k8s.io/kubernetes@v" + string(regexp.MustCompile(`(?m)^version=([0-9.]+)`).FindSubmatch(text)[1])
	for _, from := range []struct {
		module, files string
		write         func(folder, path string, document map[string]any) error
	}{
		{kubernetes, "api/openapi-spec/v3/api*_v*_openapi.json", writeBuiltIn},
		{prometheusOperator, "example/prometheus-operator-crd/*.yaml", writeCustom},
		{keda, "config/crd/bases/*.yaml", writeCustom},
	} {
		module, err := moduleFolder(from.module)
		if err != nil {
			return "", err
		}
		paths, err := filepath.Glob(filepath.Join(module, from.files))
		if err != nil || len(paths) == 0 {
			return "", fmt.Errorf("%s has no %s: %w", from.module, from.files, err)
		}
		for _, path := range paths {
			var document map[string]any
			if text, err = os.ReadFile(path); err == nil {
				err = yaml.Unmarshal(text, &document) // JSON is YAML, too
			}
			if err == nil {
				forbidOtherFields(document)
				err = from.write(folder, filepath.Base(path), document)
			}
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return folder, nil
})

// writeBuiltIn writes an OpenAPI document of Kubernetes, and for each kind a schema that refers to it.
func writeBuiltIn(folder, name string, document map[string]any) error {
	if err := writeJSON(filepath.Join(folder, name), document); err != nil {
		return err
	}
	for schema, of := range at(document, "components", "schemas").(map[string]any) {
		kinds, _ := of.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			reference := map[string]any{"$ref": name + "#/components/schemas/" + schema}
			group := at(kind, "group")
			if group == "" {
				group = at(kind, "version") // of ConfigMap and others, as in kubeconform
			}
			path := schemaPath(folder, group, at(kind, "version"), at(kind, "kind"))
			if err := writeJSON(path, reference); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeCustom writes the schemas of a CustomResourceDefinition.
func writeCustom(folder, _ string, document map[string]any) error {
	for _, version := range at(document, "spec", "versions").([]any) {
		path := schemaPath(folder, at(document, "spec", "group"), at(version, "name"), at(document, "spec", "names", "kind"))
		if err := writeJSON(path, at(version, "schema", "openAPIV3Schema")); err != nil {
			return err
		}
	}
	return nil
}

func schemaPath(folder string, group, version, kind any) string {
	return filepath.Join(folder, strings.NewReplacer(
		"{{.Group}}", group.(string), "{{.ResourceAPIVersion}}", version.(string), "{{.ResourceKind}}", strings.ToLower(kind.(string)),
	).Replace(schemaLocation))
}

// forbidOtherFields changes all schemas in a document that list the fields of an object.
func forbidOtherFields(document any) {
	switch d := document.(type) {
	case map[string]any:
		_, lists := d["properties"].(map[string]any)
		if _, others := d["additionalProperties"]; lists && !others && d["x-kubernetes-preserve-unknown-fields"] != true {
			d["additionalProperties"] = false
		}
		for _, value := range d {
			forbidOtherFields(value)
		}
	case []any:
		for _, value := range d {
			forbidOtherFields(value)
		}
	}
}

// at returns the value at a path of a document.
func at(document any, path ...string) any {
	for _, key := range path {
		document = document.(map[string]any)[key]
	}
	return document
}

func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
