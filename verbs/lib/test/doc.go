// Package test holds the tests of the C library liburdma.so: its exports and
// their binding against Debian's programs, and its verbs against a small urdmad
// written here, which speaks the control protocol and serves the rings but
// knows no network. The Go tool doesn't allow C sources beside Go files without
// cgo, hence the package of its own.
package test
