package dpdk

// All build flags are here.

// #cgo pkg-config: libdpdk
// #cgo CFLAGS: -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter
// #cgo noescape urdma_rx
// #cgo nocallback urdma_rx
// #cgo noescape urdma_tx
// #cgo nocallback urdma_tx
// #cgo noescape urdma_alloc
// #cgo nocallback urdma_alloc
// #cgo noescape urdma_free
// #cgo nocallback urdma_free
// #include "shim.h"
import "C"
