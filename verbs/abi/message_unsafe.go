package abi

import "unsafe"

// Bytes returns the bytes of a message; they alias v.
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// Decode copies a message out of b; ok is false unless b is exactly as long as T.
func Decode[T any](b []byte) (v T, ok bool) {
	if uintptr(len(b)) != unsafe.Sizeof(v) {
		return v, false
	}
	copy(Bytes(&v), b)
	return v, true
}

// At returns a *T that points to shared memory at an offset. The caller has checked that mem is long enough
// and offset is aligned for T. Ring layouts come from urdmad, never from a client.
func At[T any](mem []byte, offset int) *T {
	var zero T
	_ = mem[offset : offset+int(unsafe.Sizeof(zero))]
	return (*T)(unsafe.Pointer(&mem[offset]))
}

// Size returns the size of T in bytes.
func Size[T any]() int {
	var v T
	return int(unsafe.Sizeof(v))
}
