// Package top shows what a running urdmad does right now: rates between two
// snapshots (package inspect), again and again.
//
// rates.go compares snapshots, page.go lays a page out for a terminal of any
// size, model.go keeps it up to date (bubbletea), plain.go writes lines where
// there is no terminal. Pages and lines are made of snapshots alone.
package top
