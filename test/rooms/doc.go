// Command rooms checks the rules of docs/ARCHITECTURE.md: which packages a package may import, which it must not
// know even indirectly, that the product reaches neither test kits nor tools, and that files named in documents
// exist. It prints how many packages of ours each package imports. It reports violations on standard error and then
// exits with 1. make lint runs it.
//
// table.go is the table to edit, imports.go compares the imports with it, parts.go distinguishes product, test kits
// and tools, files.go looks for the files.
package main
