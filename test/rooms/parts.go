package main

import (
	"fmt"
	"io"
	"strings"
)

// The tree has three parts: tools (the Go module in bench), test kits (what lies in
// or below a directory whose name ends in "test"), and the product, which is all else.

func isTool(name string) bool { return name == "bench" || strings.HasPrefix(name, "bench/") }

func isKit(name string) bool {
	for dir := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(dir, "test") {
			return true
		}
	}
	return false
}

// plots are the tools' alone.
const plots = "gonum.org"

// parts complains of product packages that reach test kits or tools, and of test
// kits that reach tools.
func parts(list []listed) (complaints []string) {
	imports := importsOf(list)
	for i := range list {
		from := list[i].name()
		if isTool(from) {
			continue
		}
		reached := reach(imports, list[i].ImportPath)
		for _, path := range sortedKeys(reached) {
			name := strings.TrimPrefix(path, module)
			switch {
			case ours(path) && isTool(name), strings.HasPrefix(path, plots):
				complaints = append(complaints, fmt.Sprintf("%s must not reach tools, and does: %s", from, reached[path]))
			case ours(path) && isKit(name) && !isKit(from):
				complaints = append(complaints, fmt.Sprintf("%s is of the product and reaches a test kit: %s", from, reached[path]))
			}
		}
	}
	return complaints
}

// printFanOut prints how many packages of ours each one imports, most first.
func printFanOut(w io.Writer, list []listed) {
	byCount, most := map[int][]string{}, 0
	for i := range list {
		n := 0
		for _, path := range list[i].Imports {
			if ours(path) {
				n++
			}
		}
		byCount[n] = append(byCount[n], list[i].name())
		most = max(most, n)
	}
	fmt.Fprintln(w, "packages of ours that each package imports:")
	for n := most; n > 0; n-- {
		if len(byCount[n]) > 0 {
			fmt.Fprintf(w, "%3d  %s\n", n, strings.Join(byCount[n], " "))
		}
	}
}
