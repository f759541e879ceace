// Command rooms holds the tree to the rules of docs/ARCHITECTURE.md: which
// package of ours may import which, what some must not even know by way of
// others, and how large types, functions and folders may become. It prints what
// breaks a rule and then fails; make lint runs it.
//
// table.go is the table to edit, imports.go holds the imports against it,
// sizes.go measures the source.
package main
