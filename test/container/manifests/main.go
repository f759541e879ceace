// Command manifests checks files against the schemas of the tools that read them: Kubernetes' own types, strictly;
// the Compose specification; GitHub's workflows (actionlint); and for GitLab, whose schema is in no package, the
// rules for jobs in its reference (gitlab-ci.schema.json). It is a module of its own, so that urdma does not depend
// on these packages.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/rhysd/actionlint"
	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	failed := false
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Printf("%s: %v\n", file, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func check(file string) error {
	text, err := os.ReadFile(file)
	switch {
	case err != nil:
		return err
	case strings.Contains(filepath.Base(file), "compose"):
		return compose(file)
	case strings.Contains(filepath.Base(file), "github"):
		return workflow(file, text)
	case strings.Contains(filepath.Base(file), "gitlab"):
		return gitlab(text)
	}
	return kubernetes(text)
}

func kubernetes(text []byte) error {
	var all []error
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return err
		}
		object, ok := map[string]any{"v1 ConfigMap": &corev1.ConfigMap{}, "v1 Pod": &corev1.Pod{},
			"apps/v1 DaemonSet": &appsv1.DaemonSet{}}[head.APIVersion+" "+head.Kind]
		if !ok {
			return fmt.Errorf("document %d is %q of %q, which nothing here checks", i+1, head.Kind, head.APIVersion)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			all = append(all, fmt.Errorf("document %d, %s: %w", i+1, head.Kind, err))
		}
	}
	return errors.Join(all...)
}

func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("urdma"))
	if err != nil {
		return err
	}
	_, err = options.LoadProject(context.Background())
	return err
}

func workflow(file string, text []byte) error {
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		return err
	}
	found, err := l.Lint(file, text, nil)
	all := []error{err}
	for _, e := range found {
		all = append(all, e)
	}
	return errors.Join(all...)
}

//go:embed gitlab-ci.schema.json
var gitlabSchema []byte

func gitlab(text []byte) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(gitlabSchema))
	if err != nil {
		return err
	}
	const name = "gitlab-ci.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		return err
	}
	schema, err := c.Compile(name)
	if err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	jobs, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return schema.Validate(jobs)
}
