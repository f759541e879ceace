package memif

// heap is a queue's private buffers. They are made as needed, up to a limit for
// each use, and used again; only the worker touches them.
type heap struct {
	room   int
	bufs   [][]byte
	use    []heapUse
	free   []uint32
	counts [heapUses]int
}

// heapUse is what a buffer is given out for.
type heapUse uint8

const (
	heapFree    heapUse = iota
	heapKept            // a retained frame
	heapPassing         // a frame gathered from several slots, or to be sent while there is no link
	heapUses
)

// retainable allows a sender's whole window (4,095 segments on the wire) to be
// held out of order, and some. Passing frames have a limit of their own, so that
// neither use can take the other's buffers.
const (
	retainable   = 4608
	passingLimit = 512
)

var heapLimits = [heapUses]int{heapKept: retainable, heapPassing: passingLimit}

func newHeap(room int) heap { return heap{room: room} }

// take gives a buffer of room bytes.
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

// used is what a buffer is given out for.
func (h *heap) used(index uint32) heapUse {
	if int(index) >= len(h.use) {
		return heapFree
	}
	return h.use[index]
}

// keep makes a passing buffer a kept one.
func (h *heap) keep(index uint32) (ok bool) {
	if h.used(index) != heapPassing || h.counts[heapKept] == heapLimits[heapKept] {
		return false
	}
	h.counts[heapPassing]--
	h.counts[heapKept]++
	h.use[index] = heapKept
	return true
}

// put takes a buffer back and says what it was used for.
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
