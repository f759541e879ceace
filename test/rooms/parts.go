package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// The tree has three parts: tools (Go modules of their own), test kits (in or below a directory whose name ends in
// "test"), and the product, which is everything else.

// tools are the directories of tools.
var tools = []string{"bench", "kubernetes"}

func isTool(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(tools, first)
}

func isKit(name string) bool {
	for dir := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(dir, "test") {
			return true
		}
	}
	return false
}

// heavy are foreign modules that only tools may import.
var heavy = []string{"gonum.org", "k8s.io"}

func isHeavy(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return slices.Contains(heavy, first)
}

// parts returns a complaint for each product package that reaches a test kit or a tool, and for each test kit that
// reaches a tool.
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
			case ours(path) && isTool(name), isHeavy(path):
				complaints = append(complaints, fmt.Sprintf("%s must not reach tools, and does: %s", from, reached[path]))
			case ours(path) && isKit(name) && !isKit(from):
				complaints = append(complaints, fmt.Sprintf("%s is of the product and reaches a test kit: %s", from, reached[path]))
			}
		}
	}
	return complaints
}

// printFanOut prints the number of our packages that each package imports, the largest first.
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
