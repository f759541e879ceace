package verbs

import "unsafe"

// addressOf returns the address of a slice in this process, as peers and work requests use it. The caller
// keeps the slice alive and in place.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
