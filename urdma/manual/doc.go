// Package manual prints manual pages in the man macros of roff (man(7)):
// urdma(1) from the tree of commands, urdma.json(5) from the schema. It
// writes text and knows no files.
package manual
