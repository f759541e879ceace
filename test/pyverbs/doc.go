// Package pyverbs runs rdma-core's own tests of its libraries against liburdma.so, as Debian ships them in
// python3-pyverbs. So it shows what other authors expect of libibverbs and librdmacm.
package pyverbs
