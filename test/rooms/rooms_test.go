package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compare expects exactly these complaints, in any order.
func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, g := range got {
		if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(g, w) }) {
			t.Errorf("complains without need: %s", g)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
			t.Errorf("does not complain of %q, but of %q", w, got)
		}
	}
}

// TestImports breaks each rule of the table in a small tree.
func TestImports(t *testing.T) {
	pkg := func(name string, imports ...string) listed {
		return listed{ImportPath: module + name, Imports: imports}
	}
	good := []listed{pkg("wire"), pkg("qp", "fmt"), pkg("rdmap", module+"qp", module+"wire"),
		pkg("cm", module+"wire", "net/netip")}
	r := ruleBook{
		may:     map[string][]string{"wire": {}, "qp": {}, "rdmap": {"qp", "wire"}, "cm": {"wire"}},
		mustNot: map[string][]string{"qp": {"wire"}, "cm": {"net", "qp"}},
		below:   map[string][]string{"core": {"attach"}},
	}
	for _, c := range []struct {
		name  string
		extra listed // replaces the package of its name
		want  []string
	}{
		{"as it should be", pkg("wire"), nil},
		{"a package nobody listed", pkg("stranger"), []string{"stranger is not in the table"}},
		{"an import nobody allowed", pkg("wire", module+"cm"), []string{"wire imports cm, which"}},
		{"an allowance without use", pkg("rdmap", module+"qp"), []string{"rdmap may import wire and does not"}},
		{"what must not be known", pkg("qp", module+"wire"),
			[]string{"qp imports wire", "qp must not know wire, and does: qp → wire"}},
		{"known by way of another", pkg("wire", module+"qp"),
			[]string{"wire imports qp", "cm must not know qp, and does: cm → wire → qp"}},
		{"a foreign package", pkg("wire", "net"), []string{"cm must not know net, and does: cm → wire → net"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := slices.DeleteFunc(slices.Clone(good), func(p listed) bool { return p.ImportPath == c.extra.ImportPath })
			compare(t, r.imports(append(list, c.extra)), c.want...)
		})
	}
	t.Run("the core and a feature", func(t *testing.T) {
		r := r
		r.may = maps.Clone(r.may)
		r.may["core/qp"], r.may["core/mem"], r.may["attach/trace"] = []string{"core/mem"}, []string{"attach/trace"}, nil
		list := append(slices.Clone(good), pkg("core/qp", module+"core/mem"), pkg("core/mem", module+"attach/trace"),
			pkg("attach/trace"))
		compare(t, r.imports(list), "core/qp must not know attach, and does: core/qp → core/mem → attach/trace",
			"core/mem must not know attach")
	})
	t.Run("a package that has gone", func(t *testing.T) {
		compare(t, r.imports(good[:3]), "cm is in the table and not in the tree")
	})
}

// TestParts: packages reach forbidden ones, directly or through others.
func TestParts(t *testing.T) {
	pkg := func(name string, imports ...string) listed {
		return listed{ImportPath: module + name, Imports: imports}
	}
	good := []listed{pkg("wire"), pkg("engine/enginetest", module+"wire"), pkg("test/lab", module+"wire"),
		pkg("latest", "fmt"),
		pkg("bench/suite", module+"test/lab", "gonum.org/v1/plot")}
	for _, c := range []struct {
		name  string
		extra []listed
		want  []string
	}{
		{"as it should be", nil, nil},
		{"a kit by its name", []listed{pkg("qp", module+"engine/enginetest")},
			[]string{"qp is of the product and reaches a test kit: qp → engine/enginetest"}},
		{"a kit by its place, by way of another", []listed{pkg("qp", module+"mem"), pkg("mem", module+"test/lab")},
			[]string{"qp is of the product and reaches a test kit: qp → mem → test/lab",
				"mem is of the product and reaches a test kit"}},
		{"a tool", []listed{pkg("qp", module+"bench/results")},
			[]string{"qp must not reach tools, and does: qp → bench/results"}},
		{"a tool from a kit", []listed{pkg("test/lab", module+"bench/results")}, []string{"test/lab must not reach tools"}},
		{"plots", []listed{pkg("qp", "gonum.org/v1/plot")},
			[]string{"qp must not reach tools, and does: qp → gonum.org/v1/plot"}},
		{"another tool", []listed{pkg("qp", module+"kubernetes/cdi"), pkg("kubernetes/cdi", module+"qp", "k8s.io/api")},
			[]string{"qp must not reach tools, and does: qp → kubernetes/cdi",
				"qp must not reach tools, and does: qp → kubernetes/cdi → k8s.io/api"}},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, parts(append(slices.Clone(good), c.extra...)), c.want...) })
	}
}

func TestFanOut(t *testing.T) {
	var b strings.Builder
	printFanOut(&b, []listed{{"urdma/a", []string{"urdma/b", "urdma/c", "fmt"}}, {"urdma/b", []string{"urdma/c"}},
		{"urdma/c", nil}, {"urdma/d", []string{"urdma/c"}}})
	if _, lines, _ := strings.Cut(b.String(), "\n"); lines != "  2  a\n  1  b d\n" {
		t.Errorf("printed %q", b.String())
	}
}

// TestFiles: each document names one file that exists and one that does not.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md":         "[one](docs/a.md) `two.go`, /etc/three.h <four.h> *.go build/five.c \"six.go\".",
		"docs/b.md":         "",
		"docs/a.md":         "p/two.go:12: p/gone.c, p/q/two.go, ../p/doc.go",
		"p/doc.go":          "//\ttwo.go  it\n//\tb.md  not here; docs/a.md, then a.md",
		"p/two.go":          "gone.go",
		"build/doc.go":      "gone.go",
		".hidden/README.md": "gone.go",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := missingFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, "README.md:1: there is no file six.go", "docs/a.md:1: there is no file p/gone.c",
		"docs/a.md:1: there is no file p/q/two.go",
		"p/doc.go:2: there is no file b.md")
}

// TestTree checks the tree itself, as make lint does.
func TestTree(t *testing.T) {
	_, complaints, err := check(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}
