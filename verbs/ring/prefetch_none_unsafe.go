//go:build !amd64 && !arm64

package ring

import "unsafe"

func prefetch(unsafe.Pointer) {}
