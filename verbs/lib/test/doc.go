// Package test has the tests of the C library liburdma.so: its exports, and the binding of Debian's programs
// to them; and its verbs, with a small fake urdmad that implements the control protocol and the rings but no
// network. It is a separate package because the go tool does not allow C sources next to Go files without
// cgo.
package test
