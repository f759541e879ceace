package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is what was measured of the tree.
type source struct {
	folders   map[string]int // lines of production Go, or of C
	types     map[string]*typeSize
	functions []function
}

// typeSize is a type's, by package and name.
type typeSize struct{ methods, fields int }

// function is one by its position, and its lines.
type function struct {
	where string
	lines int
}

// measure reads the Go files of the packages.
func measure(list []listed) (*source, error) {
	s := &source{folders: map[string]int{}, types: map[string]*typeSize{}}
	for i := range list {
		p := &list[i]
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
			if err := s.file(p, name); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *source) file(p *listed, name string) error {
	text, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	if !test {
		s.folders[p.name()] += bytes.Count(text, []byte("\n"))
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, filepath.Join(p.name(), name), text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	lines := func(n ast.Node) int { return set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1 }
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			s.functions = append(s.functions, function{fmt.Sprintf("%v %s", set.Position(d.Pos()), d.Name.Name), lines(d)})
			if name := receiver(d); name != "" && !test {
				s.typeOf(p, name).methods++
			}
		case *ast.GenDecl:
			s.declared(p, d)
		}
	}
	return nil
}

// declared counts the fields of structs.
func (s *source) declared(p *listed, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if body, ok := t.Type.(*ast.StructType); ok {
			for _, f := range body.Fields.List {
				s.typeOf(p, t.Name.Name).fields += max(1, len(f.Names))
			}
		}
	}
}

func (s *source) typeOf(p *listed, name string) *typeSize {
	key := p.name() + "." + name
	if s.types[key] == nil {
		s.types[key] = new(typeSize)
	}
	return s.types[key]
}

// receiver is the name of the type that d is a method of.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	for t := d.Recv.List[0].Type; ; {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// limits holds what was measured against the limits.
func (r *ruleBook) limits(s *source) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, name := range sortedKeys(s.types) {
		t := s.types[name]
		if t.methods > r.typeMethods {
			complain("%s has %d methods, at most %d may be", name, t.methods, r.typeMethods)
		}
		if record := slices.Contains(r.records, name); t.fields > r.typeFields != record {
			complain("%s has %d fields, at most %d may be; plain records are listed, and only those that need it", name, t.fields, r.typeFields)
		}
	}
	for _, name := range r.records {
		if s.types[name] == nil {
			complain("%s is listed as a record and not in the tree", name)
		}
	}
	return append(complaints, r.lines(s)...)
}

// lines holds folders and functions against the limits.
func (r *ruleBook) lines(s *source) (complaints []string) {
	for _, name := range sortedKeys(s.folders) {
		if n := s.folders[name]; n > r.folderLines {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines of production code, at most %d may be", name, n, r.folderLines))
		}
	}
	for _, f := range s.functions {
		if f.lines > r.functionLines {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, at most %d may be", f.where, f.lines, r.functionLines))
		}
	}
	return complaints
}

// measureC measures the C files below root: the lines of each folder, tests aside,
// and the functions by our layout: what begins in the first column and ends with an
// opening brace, up to a closing brace in the first column.
func measureC(root string) (*source, error) {
	s := &source{folders: map[string]int{}}
	return s, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "build") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".c") && !strings.HasSuffix(path, ".h") {
			return err
		}
		text, err := os.ReadFile(path)
		s.functions = append(s.functions, cFunctions(path, text)...)
		if folder, _ := filepath.Rel(root, filepath.Dir(path)); !strings.Contains(folder, "testdata") {
			s.folders[folder] += bytes.Count(text, []byte("\n"))
		}
		return err
	})
}

var cName = regexp.MustCompile(`^[^\s#/}].*?(\w+)\(`)

func cFunctions(path string, text []byte) (list []function) {
	scan, line, start, name := bufio.NewScanner(bytes.NewReader(text)), 0, 0, ""
	for scan.Scan() {
		line++
		l := scan.Text()
		if m := cName.FindStringSubmatch(l); m != nil && !strings.HasSuffix(l, ";") {
			start, name = line, m[1]
		}
		if strings.HasPrefix(l, "}") {
			if start > 0 {
				list = append(list, function{fmt.Sprintf("%s:%d %s", path, start, name), line - start + 1})
			}
			start = 0
		}
	}
	return list
}
