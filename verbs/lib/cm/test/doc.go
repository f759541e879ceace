// Package test builds the librdmacm part of liburdma.so together with a fake urdmad in the same test program,
// and checks what programs see: calls, events, errno values, names and exported symbols. It knows nothing of
// the real daemon; the end-to-end tests run that.
package test
