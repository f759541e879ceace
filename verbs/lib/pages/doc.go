// Package pages contains C code of liburdma.so that decides by which path urdmad reaches registered memory
// (pages.h) and allocates memory that is shared with urdmad from the start (alloc.h), and a Go test that
// builds and runs its C test programs. It has no Go code to import: a build constraint hides the C files from
// the go tool; verbs/lib/lib.mk compiles them.
package pages
