// Package manualtest prints manual pages in the man macros of roff (man(7)), for the tests that compare docs/man
// with the programs: pages of section 1 from trees of commands, urdma.json(5) from the schema. It only produces
// text and knows no files. (go-md2man would need as much code to escape Markdown, and leaves quotes that readers
// copy curly.)
package manualtest
