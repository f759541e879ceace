package memif

// heap has a queue's private buffers: of frames gathered from several slots, or sent while there is no link.
// They are allocated as needed, up to a limit, and reused; only the worker accesses them.
type heap struct {
	room  int
	bufs  [][]byte
	taken []bool
	free  []uint32
}

const heapLimit = 512

func newHeap(room int) heap { return heap{room: room} }

// take returns a buffer of room bytes.
func (h *heap) take() (index uint32, b []byte, ok bool) {
	if n := len(h.free); n > 0 {
		index = h.free[n-1]
		h.free = h.free[:n-1]
		h.taken[index] = true
		return index, h.bufs[index], true
	}
	if len(h.bufs) == heapLimit {
		return 0, nil, false
	}
	b = make([]byte, h.room)
	h.bufs, h.taken = append(h.bufs, b), append(h.taken, true)
	return uint32(len(h.bufs) - 1), b, true
}

// put frees a buffer.
func (h *heap) put(index uint32) {
	if int(index) < len(h.taken) && h.taken[index] {
		h.taken[index] = false
		h.free = append(h.free, index)
	}
}
