// Package pages holds the C part of liburdma.so that says which path urdmad takes
// to registered memory, and that has memory which is shared with urdmad from its
// first byte on (pages.h, alloc.h), and the Go test that builds and runs its test
// programs. There is no Go code to import: the C files carry a build constraint so
// that the go tool leaves them to pages.mk.
package pages
