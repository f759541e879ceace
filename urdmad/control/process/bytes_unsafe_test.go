package process

import "unsafe"

// bytesAt returns memory that the test has mapped.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }
