// Package top shows what a running urdmad does right now: rates between two
// snapshots (package inspect), again and again.
//
// rates.go compares snapshots, page.go lays a page out for a terminal of any
// size, lines.go writes lines where there is no terminal. Both are made of
// snapshots alone.
package top
