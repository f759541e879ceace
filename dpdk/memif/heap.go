package memif

// heap has a queue's private buffers. They are allocated as needed, up to a limit for each use, and reused;
// only the worker accesses them.
type heap struct {
	room   int
	bufs   [][]byte
	use    []heapUse
	free   []uint32
	counts [heapUses]int
}

// heapUse is the use for which a buffer was taken.
type heapUse uint8

const (
	heapFree    heapUse = iota
	heapKept            // a retained frame
	heapPassing         // a frame gathered from several slots, or sent while there is no link
	heapUses
)

// retainable is large enough for a sender's whole window (4,095 segments on the wire) to be kept out of
// order. heapPassing has a limit of its own, so that neither use can exhaust the other's buffers.
const (
	retainable   = 4608
	passingLimit = 512
)

var heapLimits = [heapUses]int{heapKept: retainable, heapPassing: passingLimit}

func newHeap(room int) heap { return heap{room: room} }

// take returns a buffer of room bytes.
func (h *heap) take(use heapUse) (index uint32, b []byte, ok bool) {
	if h.counts[use] == heapLimits[use] {
		return 0, nil, false
	}
	h.counts[use]++
	if n := len(h.free); n > 0 {
		index = h.free[n-1]
		h.free = h.free[:n-1]
		h.use[index] = use
		return index, h.bufs[index], true
	}
	b = make([]byte, h.room)
	h.bufs = append(h.bufs, b)
	h.use = append(h.use, use)
	return uint32(len(h.bufs) - 1), b, true
}

// used returns the use for which a buffer was taken.
func (h *heap) used(index uint32) heapUse {
	if int(index) >= len(h.use) {
		return heapFree
	}
	return h.use[index]
}

// keep changes a buffer's use from heapPassing to heapKept.
func (h *heap) keep(index uint32) (ok bool) {
	if h.used(index) != heapPassing || h.counts[heapKept] == heapLimits[heapKept] {
		return false
	}
	h.counts[heapPassing]--
	h.counts[heapKept]++
	h.use[index] = heapKept
	return true
}

// put frees a buffer and returns its use.
func (h *heap) put(index uint32) heapUse {
	use := h.used(index)
	if use == heapFree {
		return heapFree
	}
	h.counts[use]--
	h.use[index] = heapFree
	h.free = append(h.free, index)
	return use
}
