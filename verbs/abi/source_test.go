package abi

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// This file reads the two sides that the tests compare.

// folded is a name without what C and Go write differently: underscores and case.
func folded(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// cStruct is a structure of urdma_abi.h: its name without urdma_abi_ and its
// fields' names.
type cStruct struct {
	name   string
	fields []string
}

// cHeader is urdma_abi.h: structures, and constants without URDMA_ABI_.
type cHeader struct {
	structs   []cStruct
	constants []string
}

var (
	structRE   = regexp.MustCompile(`(?s)struct urdma_abi_(\w+) \{\n(.*?)\n\};`)
	fieldRE    = regexp.MustCompile(`^\t(?:struct )?\w+ (\w+)(?:\[\w+\])*;$`)
	constantRE = regexp.MustCompile(`(?m)^(?:\t|#define )URDMA_ABI_(\w+) (?:= )?\S`)
	commentRE  = regexp.MustCompile(`(?s)\s*/\*.*?\*/`)
)

func readHeader(t *testing.T) (h cHeader) {
	t.Helper()
	b, err := os.ReadFile("urdma_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	text := commentRE.ReplaceAllString(string(b), "")
	for _, m := range structRE.FindAllStringSubmatch(text, -1) {
		s := cStruct{name: m[1]}
		for line := range strings.SplitSeq(m[2], "\n") {
			f := fieldRE.FindStringSubmatch(line)
			if f == nil {
				t.Fatalf("struct urdma_abi_%s: %q is no field in the form that this test reads", m[1], line)
			}
			s.fields = append(s.fields, f[1])
		}
		h.structs = append(h.structs, s)
	}
	for _, m := range constantRE.FindAllStringSubmatch(text, -1) {
		h.constants = append(h.constants, m[1])
	}
	if all := strings.Count(text, "\nstruct urdma_abi_"); all != len(h.structs) {
		t.Fatalf("%d of %d structures read", len(h.structs), all)
	}
	return h
}

// goFile is one file of this package: its exported structures and constants.
type goFile struct {
	structs   map[string]*types.Struct
	constants map[string]string // to the value's text
}

var sizes = types.SizesFor("gc", runtime.GOARCH)

var checked = sync.OnceValues(func() (map[string]goFile, error) {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil), Sizes: sizes}
	pkg, err := config.Check("abi", fset, parsed, nil)
	if err != nil {
		return nil, err
	}
	files := map[string]goFile{}
	for _, name := range names {
		files[name] = goFile{structs: map[string]*types.Struct{}, constants: map[string]string{}}
	}
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		file := files[filepath.Base(fset.Position(o.Pos()).Filename)]
		switch v := o.(type) {
		case *types.Const:
			if o.Exported() {
				file.constants[name] = v.Val().ExactString()
			}
		case *types.TypeName:
			if s, ok := v.Type().Underlying().(*types.Struct); ok && o.Exported() {
				file.structs[name] = s
			}
		}
	}
	return files, nil
})

// readGo returns what a file of this package declares.
func readGo(t *testing.T, file string) goFile {
	t.Helper()
	files, err := checked()
	if err != nil {
		t.Fatal(err)
	}
	return files[file]
}

// runC compiles a program against this folder's headers and returns the lines it
// prints.
func runC(t *testing.T, src string) []string {
	t.Helper()
	dir := t.TempDir()
	file, bin := filepath.Join(dir, "program.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-I.", "-o", bin, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
