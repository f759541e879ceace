package abi

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// folded removes the differences between C's and Go's spelling from a name.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// scopeOf returns the declarations in files of this package.
func scopeOf(t *testing.T, names ...string) *types.Scope {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	config := types.Config{Error: func(error) {}} // ignores what other files and packages declare
	pkg, _ := config.Check("abi", set, files, nil)
	return pkg.Scope()
}

// entries returns the entries of one kind in gcc's debug information for a C source.
func entries(t *testing.T, source string, tag dwarf.Tag) iter.Seq2[*dwarf.Data, *dwarf.Entry] {
	t.Helper()
	object := filepath.Join(t.TempDir(), "abi.o")
	gcc := exec.Command("gcc", "-g", "-fno-eliminate-unused-debug-types", "-c", "-x", "c", "-o", object, "-")
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc (make deps): %v\n%s", err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*dwarf.Data, *dwarf.Entry) bool) {
		for r := d.Reader(); ; {
			e, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e == nil || e.Tag == tag && !yield(d, e) {
				return
			}
		}
	}
}

// goLayout returns the sizes and offsets in abi_gen.go, by folded name.
func goLayout(t *testing.T) map[string]int64 {
	all, sizes, scope := map[string]int64{}, types.SizesFor("gc", runtime.GOARCH), scopeOf(t, "abi.go", "abi_gen.go")
	for _, name := range scope.Names() {
		s, ok := scope.Lookup(name).Type().Underlying().(*types.Struct)
		if !ok || name == "request" {
			continue
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, "Request"), "Message")
		all[folded(name)] = sizes.Sizeof(s)
		var fields []*types.Var
		for f := range s.Fields() {
			fields = append(fields, f)
		}
		for i, at := range sizes.Offsetsof(fields) {
			all[folded(name+"."+fields[i].Name())] = at
		}
	}
	return all
}

// cLayout returns gcc's sizes and offsets for urdma_abi.h.
func cLayout(t *testing.T) map[string]int64 {
	header, err := os.ReadFile("urdma_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for d, e := range entries(t, string(header), dwarf.TagStructType) {
		kind, err := d.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		s := kind.(*dwarf.StructType)
		name, ours := strings.CutPrefix(s.StructName, "urdma_abi_")
		if !ours {
			continue
		}
		all[folded(name)] = s.ByteSize
		for _, f := range s.Field {
			all[folded(name+"."+f.Name)] = f.ByteOffset
		}
	}
	return all
}

// TestLayout: gcc and Go lay out the structures alike.
func TestLayout(t *testing.T) {
	inGo, inC := goLayout(t), cLayout(t)
	if len(inC) < 300 {
		t.Errorf("gcc knows %d structures and fields", len(inC))
	}
	for name := range inC {
		if _, ok := inGo[name]; !ok {
			t.Errorf("%s: only in C", name)
		}
	}
	for name, n := range inGo {
		if c, ok := inC[name]; !ok || c != n {
			t.Errorf("%s: %d in Go, %d in C (%v)", name, n, c, ok)
		}
	}
}

// TestRows: every request has a row, and numbers that are not requests have a text, too.
func TestRows(t *testing.T) {
	for n, r := range requests {
		if r.name != "" && (Type(n).Text() == "" || r.way == Moves && r.undo != None) {
			t.Errorf("%d: %+v", n, r)
		}
	}
	if Type(999).String() != "message 999" || Type(999).Way() == Batched ||
		fmt.Sprint(CreateCQ, CreateCQ.Undo()) != "CREATE_CQ DESTROY_CQ" {
		t.Error(Type(999), CreateCQ, CreateCQ.Undo())
	}
}
