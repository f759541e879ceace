package mem

import (
	"bytes"
	"math"
	"testing"
)

// TestNull: a null region has every address, reads as 0 and gives peers no rights.
func TestNull(t *testing.T) {
	r, err := NewNull(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, va := range []uint64{0, 1, 1 << 40, math.MaxUint64 - 4096} {
		if !r.CheckLocal(7, va, 4096, LocalWrite) || !bytes.Equal(r.Bytes(va, 4096), make([]byte, 4096)) {
			t.Errorf("4,096 bytes at %#x are no zeros", va)
		}
		if r.CheckLocal(8, va, 1, 0) {
			t.Error("another domain may use it")
		}
	}
	if r.CheckLocal(7, math.MaxUint64, 2, 0) {
		t.Error("an element passes the end of the address space")
	}
	if n := len(r.Bytes(5, math.MaxUint32)); n != math.MaxUint32 {
		t.Errorf("the longest element has %d bytes", n)
	}
	for _, want := range []uint32{RemoteRead, RemoteWrite, RemoteAtomic} {
		if v := r.CheckRemote(User{PD: 7}, 0, 8, want); v != NoRight {
			t.Errorf("a peer that wants %#x: %v", want, v)
		}
	}
	if r.Length() != 0 || !r.Shared() || !r.Null() {
		t.Errorf("length %d", r.Length())
	}
}
