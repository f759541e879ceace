package fault_test

import "unsafe"

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
