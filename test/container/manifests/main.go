// Command manifests checks files against the schemas of the tools that read them: Kubernetes' own types, strictly, and
// its API server's OpenAPI schemas; a chart, rendered by Helm's library with each file of values in its directory ci;
// the Compose specification; GitHub's workflows (actionlint); and for GitLab, whose schema is in no package, the rules
// for jobs in its reference (gitlab-ci.schema.json). It is a module of its own, so that urdma does not depend on these
// packages.
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
	"sigs.k8s.io/yaml"
)

// main checks the files and charts that it is given. With -render CHART VALUES... it prints the chart's manifests.
func main() {
	if len(os.Args) > 2 && os.Args[1] == "-render" {
		text, err := render(os.Args[2], os.Args[3:]...)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(text)
		return
	}
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
	if isChart(file) {
		return checkChart(file)
	}
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
