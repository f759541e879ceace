package qp

import "math"

// A send queue's private copies lie in chunks that come when work is posted and
// go when it has completed: an idle queue pair has one at most, however long its
// queue, and what clients post decides what they cost.

// chunkSlots is how many work requests a chunk holds, a power of two.
const chunkSlots = 8

// chunk is copies of neighbouring slots, with their scatter/gather lists.
type chunk struct {
	wrs   [chunkSlots]SendWR
	width int // of each list
}

// maxSpare is how many chunks of one width are kept for the next queue that needs one.
const maxSpare = 256

// chunkPool keeps chunks, by their width, that no queue needs now: all that their
// work requests held was released. It belongs to the worker's thread.
type chunkPool struct {
	spare map[int][]*chunk
}

func (p *chunkPool) get(width int) *chunk {
	list := p.spare[width]
	if len(list) == 0 {
		c := &chunk{width: width}
		elements := make([]element, chunkSlots*width)
		for i := range c.wrs {
			c.wrs[i].list = elements[i*width : i*width : (i+1)*width]
		}
		return c
	}
	c := list[len(list)-1]
	p.spare[width] = list[:len(list)-1]
	return c
}

func (p *chunkPool) put(c *chunk) {
	if p.spare == nil {
		p.spare = map[int][]*chunk{}
	}
	if list := p.spare[c.width]; len(list) < maxSpare {
		p.spare[c.width] = append(list, c)
	}
}

// slots are the copies of a send queue's slots. Indices run freely.
type slots struct {
	chunks []*chunk // by slot/chunkSlots; nil: none of its slots is in use
	width  int
	mask   uint32
	pool   *chunkPool // nil until the first work request
}

// init makes room for copies. A queue that does not exist, of 0 entries, has one that
// is never in use: the oldest and the next work request of a queue can always be
// looked at.
func (s *slots) init(entries uint32, width int) {
	entries = max(entries, 1)
	s.chunks = make([]*chunk, (entries+chunkSlots-1)/chunkSlots)
	s.width, s.mask = width, entries-1
}

// vacant stands for a slot that is not in use. Nobody writes to it.
var vacant = SendWR{Op: operationOf(math.MaxUint32)}

// At is the work request of an index.
func (s *slots) At(i uint32) *SendWR {
	slot := i & s.mask
	c := s.chunks[slot/chunkSlots]
	if c == nil {
		return &vacant
	}
	return &c.wrs[slot%chunkSlots]
}

// use is At for an index that is about to be in use.
func (s *slots) use(p *chunkPool, i uint32) *SendWR {
	if c := &s.chunks[i&s.mask/chunkSlots]; *c == nil {
		s.pool = p
		*c = p.get(s.width)
	}
	return s.At(i)
}

// passed gives back the chunk that ends with an index, once that has completed
// and no newer work, up to tail, has come round to its slots.
func (s *slots) passed(i, tail uint32) {
	first := i &^ (chunkSlots - 1)
	if (i+1)%chunkSlots != 0 || tail-first > s.mask+1 {
		return
	}
	if c := &s.chunks[i&s.mask/chunkSlots]; *c != nil {
		s.pool.put(*c)
		*c = nil
	}
}
