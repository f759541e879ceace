package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// missingFiles returns a complaint for each file that doc.go, README.md or docs/*.md names and that does not exist in
// the tree at root.
func missingFiles(root string) (complaints []string, err error) {
	tree := os.DirFS(root)
	var documents []string
	there := map[string]bool{} // the path of every file, and each end of it that begins with a name
	err = fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || file == "build") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		if name := d.Name(); name == "doc.go" || name == "README.md" || strings.HasPrefix(file, "docs/") &&
			path.Ext(name) == ".md" {
			documents = append(documents, file)
		}
		for end, more := file, true; more; _, end, more = strings.Cut(end, "/") {
			there[end] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		text, err := fs.ReadFile(tree, document)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, name := range filesNamed(line) {
				if !exists(tree, there, document, name) && !strings.Contains(string(text), "/"+name) { // named in full elsewhere
					complaints = append(complaints, fmt.Sprintf("%s:%d: there is no file %s", filepath.Join(root, document), i+1,
						name))
				}
			}
		}
	}
	return complaints, nil
}

// exists reports whether the tree has the file. doc.go names files of its own directory; other documents name files
// of any directory.
func exists(tree fs.FS, there map[string]bool, document, name string) bool {
	if _, err := fs.Stat(tree, path.Join(path.Dir(document), name)); err == nil {
		return true
	}
	return there[name] && (strings.Contains(name, "/") || path.Base(document) != "doc.go")
}

// sources are the endings of source files' names. Files with other endings, such as .json, are mostly made by the
// reader.
var sources = map[string]bool{".go": true, ".c": true, ".h": true, ".S": true, ".md": true, ".sh": true, ".lua": true,
	".mk": true, ".py": true}

// filesNamed returns the names of source files in a line. Names with a wildcard or a variable, and absolute paths,
// don't count.
func filesNamed(line string) (names []string) {
	for word := range strings.FieldsFuncSeq(line,
		func(r rune) bool { return strings.ContainsRune(" \t,;:()[]|`'\"", r) }) {
		word = strings.TrimRight(word, ".")
		if sources[path.Ext(word)] && !strings.ContainsAny(word, "*$<>{}~") && word[0] != '/' && word[0] != '.' &&
			!elsewhere(word) {
			names = append(names, word)
		}
	}
	return names
}

// elsewhere reports whether a file is made by the reader, or a header of libibverbs or librdmacm.
func elsewhere(name string) bool {
	dir, _, _ := strings.Cut(name, "/")
	return dir == "build" || dir == "infiniband" || dir == "rdma"
}
