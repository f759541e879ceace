// Package recipes types what docs/recipes.md and docs/two-machines.md show, and
// what the examples of continuous integration run.
package recipes
