package verbs

import "unsafe"

// addressOf is where a slice that is pinned, or not Go's, begins.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
