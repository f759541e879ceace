// Package pages holds the C part of liburdma.so that turns registered memory
// into pages shared with urdmad (pages.h), and the Go test that builds and
// runs its torture programs. There is no Go code to import: the C files carry
// a build constraint so that the go tool leaves them to pages.mk.
package pages
