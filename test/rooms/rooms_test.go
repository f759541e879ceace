package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compare wants exactly these complaints, in any order.
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
	good := []listed{pkg("wire"), pkg("qp", "fmt"), pkg("rdmap", module+"qp", module+"wire"), pkg("cm", module+"wire", "net/netip")}
	r := ruleBook{
		may:     map[string][]string{"wire": {}, "qp": {}, "rdmap": {"qp", "wire"}, "cm": {"wire"}},
		mustNot: map[string][]string{"qp": {"wire"}, "cm": {"net", "qp"}},
	}
	for _, c := range []struct {
		name  string
		extra listed // in place of the one of its name
		want  []string
	}{
		{"as it should be", pkg("wire"), nil},
		{"a package nobody listed", pkg("stranger"), []string{"stranger is not in the table"}},
		{"an import nobody allowed", pkg("wire", module+"cm"), []string{"wire imports cm, which"}},
		{"an allowance without use", pkg("rdmap", module+"qp"), []string{"rdmap may import wire and does not"}},
		{"what must not be known", pkg("qp", module+"wire"), []string{"qp imports wire", "qp must not know wire, and does: qp → wire"}},
		{"known by way of another", pkg("wire", module+"qp"),
			[]string{"wire imports qp", "cm must not know qp, and does: cm → wire → qp"}},
		{"a foreign package", pkg("wire", "net"), []string{"cm must not know net, and does: cm → wire → net"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := slices.DeleteFunc(slices.Clone(good), func(p listed) bool { return p.ImportPath == c.extra.ImportPath })
			compare(t, r.imports(append(list, c.extra)), c.want...)
		})
	}
	t.Run("a package that has gone", func(t *testing.T) {
		compare(t, r.imports(good[:3]), "cm is in the table and not in the tree")
	})
}

// TestSizes makes each size one too large, and each just large enough.
func TestSizes(t *testing.T) {
	r := ruleBook{typeMethods: 3, typeFields: 4, functionLines: 5, folderLines: 60, records: []string{"p.Record"}}
	methods := func(n int) (s string) {
		for i := range n {
			s += fmt.Sprintf("func (t *T[K]) m%d() {}\n", i)
		}
		return "type T[K any] struct{}\n" + s
	}
	record := "type Record struct { A, B, C, D, E int }\n"
	for _, c := range []struct {
		name, text, test string
		want             []string
	}{
		{"small enough", record + methods(3) + "func f() {" + strings.Repeat("\n", 4) + "}\n", methods(0), nil},
		{"methods", record + methods(4), "", []string{"p.T has 4 methods"}},
		{"methods for tests", record + methods(3), "func (t *T[K]) more() {}\n", nil},
		{"fields", record + "type T struct { A, B int; C, D, e bool }\n", "", []string{"p.T has 5 fields"}},
		{"embedded", record + "type T struct { Record; a, b, c, d int }\n", "", []string{"p.T has 5 fields"}},
		{"a record that needs no leave", "type Record struct { A int }\n", "", []string{"p.Record has 1 fields"}},
		{"a record that has gone", "type T int\n", "", []string{"p.Record is listed"}},
		{"function", record + "func f() {" + strings.Repeat("\n", 5) + "}\n", "", []string{"p.go:3:1 f has 6 lines"}},
		{"function of a test", record, "func f() {" + strings.Repeat("\n", 5) + "}\n", []string{"p_test.go:2:1 f has 6 lines"}},
		{"folder", record + strings.Repeat("\n", 60), "", []string{"p has 62 lines"}},
		{"tests do not count", record, strings.Repeat("\n", 60), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"p.go": c.text, "p_test.go": c.test} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("package p\n"+text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s, err := measure([]listed{{Dir: dir, ImportPath: module + "p", GoFiles: []string{"p.go"}, TestGoFiles: []string{"p_test.go"}}})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, r.limits(s), c.want...)
		})
	}
}

func TestCFunctions(t *testing.T) {
	text := `static const struct verbs_ops ops = {
	.a = 1,
};

int declared(int a,
	     int b);

static int one(struct a *x)
{
	return x->y;
}

LDBL void *two(int a,
	       int b) {
	if (a) {
	}
	return 0;
}
`
	got := cFunctions("x.c", []byte(text))
	want := []function{{"x.c:8 one", 4}, {"x.c:13 two", 6}}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}

// TestCFolders: a folder's C files count together, tests' do not.
func TestCFolders(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]int{"p/a.c": 30, "p/b.h": 31, "p/testdata/c.c": 100} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("\n", lines)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := measureC(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := ruleBook{folderLines: 60, functionLines: 5}
	compare(t, r.lines(s), "p has 61 lines")
}

// TestTree holds the tree itself to the rules, as make lint does.
func TestTree(t *testing.T) {
	complaints, err := check(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}
