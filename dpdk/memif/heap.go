package memif

// heap is a queue's private buffers: for retained frames, for frames gathered
// from several slots, and for what Alloc hands out while there is no link. They
// are made as needed, up to a limit, and used again; only the worker touches
// them.
type heap struct {
	room  int
	limit int
	bufs  [][]byte
	inUse []bool
	free  []uint32
}

// heapLimit allows a sender's whole window (4,095 segments on the wire) to be
// held out of order, and some.
const heapLimit = 5120

func newHeap(room int) heap { return heap{room: room, limit: heapLimit} }

// take gives a buffer of room bytes.
func (h *heap) take() (index uint32, b []byte, ok bool) {
	if n := len(h.free); n > 0 {
		index = h.free[n-1]
		h.free = h.free[:n-1]
		h.inUse[index] = true
		return index, h.bufs[index], true
	}
	if len(h.bufs) >= h.limit {
		return 0, nil, false
	}
	b = make([]byte, h.room)
	h.bufs = append(h.bufs, b)
	h.inUse = append(h.inUse, true)
	return uint32(len(h.bufs) - 1), b, true
}

// put takes a buffer back; ok is false if it was not given out.
func (h *heap) put(index uint32) (ok bool) {
	if int(index) >= len(h.inUse) || !h.inUse[index] {
		return false
	}
	h.inUse[index] = false
	h.free = append(h.free, index)
	return true
}
