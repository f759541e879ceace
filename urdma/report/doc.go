// Package report prints snapshots (package inspect) for people: an aligned table for each kind of object, and a
// summary of a urdmad.
//
// table.go lays out tables, units.go formats numbers, objects.go lists the columns of each object, status.go prints
// the summary. It asks no urdmad for anything.
package report
