package dpdk

// copies are private buffers for received frames that are kept for long while the mbuf pool is nearly empty.
// They are allocated as needed and reused.
type copies struct {
	room int
	bufs [][]byte
	free []uintptr // refs
}

const copiesLimit = 4096

// take returns a buffer; refCopy is set in its ref.
func (c *copies) take() (ref uintptr, b []byte, ok bool) {
	if n := len(c.free); n > 0 {
		ref = c.free[n-1]
		c.free = c.free[:n-1]
		return ref, c.bufs[ref>>1], true
	}
	if len(c.bufs) == copiesLimit {
		return 0, nil, false
	}
	c.bufs = append(c.bufs, make([]byte, c.room))
	last := len(c.bufs) - 1
	return uintptr(last)<<1 | refCopy, c.bufs[last], true
}

func (c *copies) put(ref uintptr) { c.free = append(c.free, ref) }
