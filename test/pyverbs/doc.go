// Package pyverbs runs the tests that rdma-core brings for its own libraries, as
// Debian ships them in python3-pyverbs, against liburdma.so: what others assume
// of libibverbs and librdmacm, written by others.
package pyverbs
