// Package top shows the current activity of a running urdmad: rates between two snapshots (package inspect), again
// and again.
//
// rates.go compares snapshots, page.go lays out a page for a terminal of any size, lines.go writes lines if there
// is no terminal. Both use snapshots only.
package top
