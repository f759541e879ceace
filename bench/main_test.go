package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func runBench(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// Copying memory, which needs neither programs nor root, is measured and written.
func TestBenchWritesRuns(t *testing.T) {
	build := t.TempDir()
	script := "#!/bin/sh\necho urdmad version 0.1.0-gtest\n"
	if err := os.WriteFile(filepath.Join(build, "urdmad"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	out, err := runBench("--build", build, "--out", dir, "--only", "copying 64", "--rounds", "2", "--seconds", "0.01",
		"--markdown", page)
	if err != nil || !strings.Contains(out, "one thread copying 64 KiB") || !strings.Contains(out, "0.1.0-gtest") {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, pattern := range []string{"run-*.json", "page.md", "benchmarks"} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) == 0 {
			t.Errorf("no %s was written", pattern)
		}
	}
}

// Another build is measured in the same rounds, and each figure compared with its own.
func TestBenchBefore(t *testing.T) {
	build, before := t.TempDir(), t.TempDir()
	for _, dir := range []string{build, before} {
		script := "#!/bin/sh\necho urdmad version 0.1.0-gtest\n"
		if err := os.WriteFile(filepath.Join(dir, "urdmad"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := runBench("--build", build, "--before", before, "--out", t.TempDir(), "--only", "copying 64",
		"--rounds", "2", "--seconds", "0.01")
	if err != nil || !strings.Contains(out, "copying 64 KiB, before") || strings.Count(out, "copying 64 KiB ") < 2 ||
		!strings.Contains(out, "≥ 1") || strings.Contains(out, "≥ 0.7") {
		t.Fatalf("%v:\n%s", err, out)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--only (", "--only"},
		{"--only nosuch --build .", "urdmad"},
		{"--rounds 0", "--rounds 0"},
		{"--seconds -1", "--seconds -1"},
		{"--limit -1s", "--limit -1s"},
		{"extra", "extra"},
	} {
		if out, err := runBench(append(strings.Fields(c.args), "--out", t.TempDir())...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not name %q (%s)", c.args, err, c.want, out)
		}
	}
	if out, err := runBench("--list"); err != nil || strings.Count(out, "\n") < 20 {
		t.Errorf("--list: %v, %q", err, out)
	}
}
