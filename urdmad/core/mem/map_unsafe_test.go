package mem

import (
	"testing"
	"unsafe"
)

// TestHugePagesFit: a file's huge pages are placed in a view so that the kernel can map each by one entry.
func TestHugePagesFit(t *testing.T) {
	s := space(t, 4*viewAlign)
	for at := uint64(0); at < 4*viewAlign; at += viewAlign {
		m, err := s.Map(1, at, viewAlign)
		if err != nil {
			t.Fatal(err)
		}
		if address := uintptr(unsafe.Pointer(&m.Bytes[0])); address%hugePage != 0 {
			t.Errorf("offset %#x is mapped at %#x", at, address)
		}
		m.Bytes[0], m.Bytes[viewAlign-1] = 1, 1
	}
}
