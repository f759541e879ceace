package mem

import "unsafe"

// word returns the number at va in urdmad's address space; nil on the fallback path.
func (r *Region) word(va uint64) *uint64 {
	b := r.Bytes(va, WordLen)
	if b == nil {
		return nil
	}
	return (*uint64)(unsafe.Pointer(&b[0]))
}

// wordAligned reports whether shared memory at va is aligned in its mapping.
func (r *Region) wordAligned(va uint64) bool {
	return uintptr(unsafe.Pointer(r.word(va)))%WordLen == 0
}
