package enginetest

import "unsafe"

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// Word returns the number at the start of b, which must be aligned, for use with sync/atomic.
func Word(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(&b[0])) }
