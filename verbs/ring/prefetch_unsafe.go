//go:build amd64 || arm64

package ring

import "unsafe"

// prefetch asks for the two cache lines from p on, 64 bytes each, and waits for
// neither. It never faults, whatever p is.
//
//go:noescape
func prefetch(p unsafe.Pointer)
