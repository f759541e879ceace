package port

import "unsafe"

// Contains reports whether a page of the bytes has an address.
func (l *Loan) Contains(addr uintptr) bool {
	const page = 4096
	start := uintptr(unsafe.Pointer(unsafe.SliceData(l.Bytes)))
	return addr >= start&^(page-1) && addr < start+uintptr(len(l.Bytes))
}
