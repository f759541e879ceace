package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func isChart(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "Chart.yaml"))
	return err == nil
}

// checkChart renders a chart with its own values, and with each file of values in its directory ci.
func checkChart(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "ci", "*.yaml"))
	if err != nil {
		return err
	}
	all := []error{checkRendered(dir)}
	for _, file := range files {
		if err := checkRendered(dir, file); err != nil {
			all = append(all, fmt.Errorf("with %s: %w", filepath.Base(file), err))
		}
	}
	return errors.Join(all...)
}

func checkRendered(dir string, values ...string) error {
	text, err := render(dir, values...)
	if err != nil {
		return err
	}
	return kubernetes([]byte(text))
}

// render returns the chart's manifests as helm template urdmad would, with the values of files; later ones win.
func render(dir string, files ...string) (string, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	values := chartutil.Values{}
	for _, file := range files {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return "", err
		}
		values = chartutil.CoalesceTables(more, values)
	}
	return manifests(c, values)
}

func manifests(c *chart.Chart, values chartutil.Values) (string, error) {
	top, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "urdmad", Namespace: "default",
		IsInstall: true}, nil)
	if err != nil {
		return "", err
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, top)
	if err != nil {
		return "", err
	}
	var documents []string
	for name, text := range rendered {
		// Partials begin with "_"; the notes are for people.
		if text = strings.TrimSpace(text); text != "" && path.Ext(name) == ".yaml" {
			documents = append(documents, "# "+path.Base(name)+"\n"+text)
		}
	}
	slices.Sort(documents)
	return strings.Join(documents, "\n---\n") + "\n", nil
}
