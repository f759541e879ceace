package walk

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// noted has the files whose functions are recorded.
var noted = []string{root + "/urdmad/core/*/*.go", root + "/verbs/ring/daemon_unsafe.go"}

// overlay writes copies of the core's files in which each function records its call, and returns the file for go's
// -overlay.
func overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	var files []string
	for _, pattern := range noted {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("no files in %s: %v", pattern, err)
		}
		files = append(files, some...)
	}
	for n, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(to, noting(t, path, text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// noting returns a file's text with a line at the beginning of each function.
func noting(t *testing.T, path string, text []byte) []byte {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, file := filepath.Base(filepath.Dir(path)), filepath.Base(path)
	var out strings.Builder
	at := 0
	insert := func(pos token.Pos, line string) {
		offset := set.Position(pos).Offset
		out.Write(text[at:offset])
		out.WriteString(line)
		at = offset
	}
	insert(f.Name.End(), `; import noted "urdma/test/walk/record"`)
	used := false
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || onlyReturns(fn.Body) {
			continue
		}
		used = true
		insert(fn.Body.Lbrace+1, fmt.Sprintf("defer noted.In(%q, %q, %q)();", pkg, file, fn.Name.Name))
	}
	out.Write(text[at:])
	if !used {
		return text
	}
	return []byte(out.String())
}

// onlyReturns reports whether a function only returns an expression.
func onlyReturns(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return true
	}
	_, returns := b.List[0].(*ast.ReturnStmt)
	return returns && len(b.List) == 1
}
