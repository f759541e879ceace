// Package report prints snapshots (package inspect) for people: one aligned
// table for each kind of object, and a page that sums an urdmad up.
//
// table.go lays out, units.go writes numbers, objects.go says which columns an
// object has, status.go sums up. It asks nobody for anything.
package report
