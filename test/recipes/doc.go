// Package recipes executes the commands of docs/recipes*.md, docs/two-machines.md and other pages, and of the
// examples for continuous integration.
package recipes
