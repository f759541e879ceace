package mem

import "unsafe"

// Contains reports whether addr, an address in urdmad, lies in a view of
// this client's memory. It is how a fault is put to the client's account.
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
