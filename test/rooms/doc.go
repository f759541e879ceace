// Command rooms holds the tree to the rules of docs/ARCHITECTURE.md: which
// package of ours may import which, what some must not know even by way of
// others, that the product reaches neither test kits nor tools, and that the files
// named in documents exist. It prints how many packages of ours each one imports,
// complains on standard error of what breaks a rule, and then fails; make lint
// runs it.
//
// table.go is the table to edit, imports.go holds the imports against it, parts.go
// tells product, test kits and tools apart, files.go looks for the files.
package main
