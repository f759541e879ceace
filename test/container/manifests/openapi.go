package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPI is the directory of the API server's OpenAPI schemas, version 3; "": documents are only decoded. Types don't
// say which fields are required, and which values a field may have.
var openAPI = os.Getenv("URDMA_OPENAPI")

// validate checks a document against the API server's schema of its kind.
func validate(version, kind string, document any) error {
	if openAPI == "" {
		return nil
	}
	file := "api__" + version
	if group, v, found := strings.Cut(version, "/"); found {
		file = "apis__" + group + "__" + v
	}
	file = filepath.Join(openAPI, file+"_openapi.json")
	text, err := os.Open(file)
	if err != nil {
		return err
	}
	defer text.Close()
	schemas, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	name, err := schemaName(schemas, version, kind)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", schemas); err != nil {
		return err
	}
	schema, err := c.Compile("openapi.json#/components/schemas/" + name)
	if err != nil {
		return err
	}
	return schema.Validate(document)
}

// schemaName finds the schema that says to be of that kind.
func schemaName(schemas any, version, kind string) (string, error) {
	components, _ := schemas.(map[string]any)["components"].(map[string]any)
	all, _ := components["schemas"].(map[string]any)
	for name, schema := range all {
		kinds, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // such as DeleteOptions, of every group
			continue
		}
		k, _ := kinds[0].(map[string]any)
		if k["kind"] == kind && strings.TrimPrefix(fmt.Sprint(k["group"], "/", k["version"]), "/") == version {
			return name, nil
		}
	}
	return "", fmt.Errorf("no schema of %s", kind)
}
