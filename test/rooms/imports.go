package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is the first part of the import path of every package of ours except the root.
const module = "urdma/"

// listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Imports    []string
}

// name returns the import path without the module.
func (p *listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// listPackages returns the packages of the module at root and of the tools.
func listPackages(root string) (list []listed, err error) {
	for _, dir := range append([]string{"."}, tools...) {
		dir = filepath.Join(root, dir)
		cmd := exec.Command(goCommand(), "list", "-json=ImportPath,Imports", "./...")
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list in %s: %w", dir, err)
			}
			if !strings.HasPrefix(p.name(), "build/") { // make deb leaves the examples there
				list = append(list, p)
			}
		}
	}
	return list, nil
}

// goCommand returns the go command that runs us: go run and go test put its GOROOT into the environment.
func goCommand() string {
	if root := os.Getenv("GOROOT"); root != "" {
		return filepath.Join(root, "bin", "go")
	}
	return "go"
}

// ours reports whether an import path is one of this module's packages.
func ours(path string) bool { return strings.HasPrefix(path, module) }

// imports compares every import between packages of ours with the table.
func (r *ruleBook) imports(list []listed) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	there := map[string]bool{}
	for i := range list {
		p := &list[i]
		there[p.name()] = true
		allowed, known := r.may[p.name()]
		if !known {
			complain("%s is not in the table", p.name())
		}
		for _, path := range p.Imports {
			if name, ok := strings.CutPrefix(path, module); ok && known && !slices.Contains(allowed, name) {
				complain("%s imports %s, which the table does not allow", p.name(), name)
			}
		}
		for _, name := range allowed {
			if !slices.Contains(p.Imports, module+name) {
				complain("%s may import %s and does not", p.name(), name)
			}
		}
	}
	for _, name := range sortedKeys(r.may) {
		if !there[name] {
			complain("%s is in the table and not in the tree", name)
		}
	}
	return append(complaints, r.ignorance(list)...)
}

// ignorance checks that packages don't reach packages that they must not know, directly or through other packages.
func (r *ruleBook) ignorance(list []listed) (complaints []string) {
	imports := importsOf(list)
	for _, name := range sortedKeys(r.mustNot) {
		complaints = append(complaints, knows(imports, name, r.mustNot[name])...)
	}
	for _, folder := range sortedKeys(r.below) {
		for i := range list {
			if name := list[i].name(); within(list[i].ImportPath, folder) && !isKit(name) {
				complaints = append(complaints, knows(imports, name, r.below[folder])...)
			}
		}
	}
	return complaints
}

// knows returns a complaint for each package that a package must not know and reaches.
func knows(imports map[string][]string, name string, mustNot []string) (complaints []string) {
	paths := reach(imports, module+name)
	for _, forbidden := range mustNot {
		for _, path := range sortedKeys(paths) {
			if within(path, forbidden) {
				complaints = append(complaints, fmt.Sprintf("%s must not know %s, and does: %s", name, forbidden, paths[path]))
			}
		}
	}
	return complaints
}

func importsOf(list []listed) map[string][]string {
	imports := map[string][]string{}
	for i := range list {
		imports[list[i].ImportPath] = list[i].Imports
	}
	return imports
}

// reach returns everything that a package imports directly or through our packages, each with the chain of imports.
func reach(imports map[string][]string, from string) map[string]string {
	chains := map[string]string{from: strings.TrimPrefix(from, module)}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, path := range imports[queue[0]] {
			if _, seen := chains[path]; seen {
				continue
			}
			chains[path] = chains[queue[0]] + " → " + strings.TrimPrefix(path, module)
			if ours(path) {
				queue = append(queue, path)
			}
		}
	}
	delete(chains, from)
	return chains
}

// within reports whether an import path is the package that a rule names, or is below it.
func within(path, rule string) bool {
	name := strings.TrimPrefix(path, module)
	return name == rule || strings.HasPrefix(name, rule+"/") && ours(path)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
