// Package manualtest prints manual pages in the man macros of roff (man(7)), for the
// tests that hold docs/man to what programs print of themselves: pages of section 1
// from trees of commands, urdma.json(5) from the schema. It writes text and knows no
// files. (go-md2man would need as much code to escape Markdown, and leaves quotes that
// readers copy curly.)
package manualtest
