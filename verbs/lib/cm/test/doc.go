// Package test builds the librdmacm half of liburdma.so against a urdmad
// inside the test program and checks what programs see of it: calls, events,
// errno values, names and exported symbols. It knows nothing of the real
// daemon; the end-to-end tests run that.
package test
