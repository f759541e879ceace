package mem

import "unsafe"

// Contains reports whether addr, an address in urdmad, is in a view of this client's memory. It attributes
// a fault to a client.
func (s *Space) Contains(addr uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.views {
		start := uintptr(unsafe.Pointer(&w.bytes[0]))
		if addr >= start && addr-start < uintptr(len(w.bytes)) {
			return true
		}
	}
	return false
}
