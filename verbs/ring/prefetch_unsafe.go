//go:build amd64 || arm64

package ring

import "unsafe"

// prefetch requests the two cache lines from p on, 64 bytes each, without waiting. It never faults, whatever
// p is.
//
//go:noescape
func prefetch(p unsafe.Pointer)
