package trp

import (
	"math/rand/v2"
	"testing"

	"urdma/wire"
)

// keep records that a packet is kept for a PSN, as Conn.hold does.
func (h *heldRing) keepFor(psn wire.PSN) {
	page, _ := h.slot(psn)
	page.used++
}

func (h *heldRing) pagesUsed() (n int) {
	for _, p := range h.pages {
		if p != nil {
			n++
		}
	}
	return n
}

// TestHeldPages: a packet kept far ahead in a large window needs one page, a page is returned with its last
// packet, and no page is allocated while unused ones exist.
func TestHeldPages(t *testing.T) {
	const window = 1 << 16
	var spare heldPages
	var h heldRing
	h.init(window, &spare)
	before := wire.PSN(5).Add(^uint32(window/2 - 1)) // the wrap
	h.keepFor(before)
	h.keepFor(6)
	h.keepFor(7)
	if n := h.pagesUsed(); n != 2 {
		t.Errorf("%d pages for three packets in two places", n)
	}
	h.take(before)
	h.take(6)
	if n := h.pagesUsed(); n != 1 || len(spare.free) != 1 {
		t.Errorf("%d pages are in use and %d spare with one packet left", n, len(spare.free))
	}
	h.take(7)
	fill := func() {
		for psn := range wire.PSN(window) {
			h.keepFor(psn)
		}
		for psn := range wire.PSN(window) {
			h.take(psn)
		}
	}
	fill()
	if n := h.pagesUsed(); n != 0 || len(spare.free) != window/pageSlots {
		t.Errorf("%d pages are in use and %d spare with none left", n, len(spare.free))
	}
	if n := testing.AllocsPerRun(3, fill); n != 0 {
		t.Errorf("%v allocations the second time", n)
	}
}

// TestHeldPagesOfSmallWindows: any power of two is a valid window, and taking a packet that was never kept
// is allowed.
func TestHeldPagesOfSmallWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for window := 1; window <= 2048; window *= 2 {
		var spare heldPages
		var h heldRing
		h.init(window, &spare)
		h.take(3)
		kept := map[wire.PSN]bool{}
		base := wire.PSN(r.Uint32())
		for range 3 * window {
			psn := base.Add(r.Uint32N(uint32(window)))
			if !kept[psn] {
				h.keepFor(psn)
			} else {
				h.take(psn)
			}
			kept[psn] = !kept[psn]
		}
		for psn, is := range kept {
			if is {
				h.take(psn)
			}
		}
		if n := h.pagesUsed(); n != 0 {
			t.Errorf("a window of %d: %d pages are in use with nothing kept", window, n)
		}
	}
}
