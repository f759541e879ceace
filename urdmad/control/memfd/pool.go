package memfd

// A queue with a file of its own costs two mappings, four system calls and a page fault for each
// page on either side. That is more than everything else needed for a queue, and its head alone
// occupies a page. So several queues of one client share a file; two clients never do. Heads are
// touched at once and lie at the beginning of a file; slots and entries are touched on use and
// lie at its end.

// Pool is the memory of one client's queues. It is not safe for concurrent use.
type Pool struct {
	// Take is called before a file of some bytes is made and mapped, Give when
	// the file is removed.
	Take func(bytes int) error
	Give func(bytes int)

	files []*file // oldest first
	made  uint32
}

// Sizes in bytes. Files grow from leastFile to mostFile; a queue larger than MostPart gets a file
// of its own.
const (
	granule   = 64 // a cache line
	leastFile = 64 << 10
	mostFile  = 1 << 20
	MostPart  = mostFile / 4
)

// Place is the location of a queue's memory: the number of the file, from 1, unique for the
// client, and offsets in bytes.
type Place struct{ File, Heads, Slots uint32 }

// file is a file shared by several queues.
type file struct {
	number uint32
	memory *Shared
	used   room
	parts  int
}

// New allocates a queue's heads, all zero, and its slots, with undefined content. The result has
// a descriptor if the client has not been given this file before. The file is removed when Close
// has freed its last queue.
func (p *Pool) New(heads, slots int) (*Shared, Place, error) {
	for _, f := range p.files {
		if m, at, ok := p.part(f, heads, slots); ok {
			return m, at, nil
		}
	}
	f, err := p.grow(rounded(heads) + rounded(slots))
	if err != nil {
		return nil, Place{}, err
	}
	m, at, _ := p.part(f, heads, slots)
	m.FD, f.memory.FD = f.memory.FD, -1
	return m, at, nil
}

// grow makes a new file; it is of the smallest size if no more can be had.
func (p *Pool) grow(least int) (*file, error) {
	size := leastFile
	for range p.files {
		size = min(4*size, mostFile)
	}
	for size < least {
		size *= 2
	}
	err := p.Take(size)
	if err != nil && least < size {
		size = (least + 4095) &^ 4095
		err = p.Take(size)
	}
	if err != nil {
		return nil, err
	}
	m, err := New("urdma-queues", size)
	if err != nil {
		p.Give(size)
		return nil, err
	}
	p.made++
	f := &file{number: p.made, memory: m, used: newRoom(size / granule)}
	p.files = append(p.files, f)
	return f, nil
}

// part allocates memory in a file, if there is enough.
func (p *Pool) part(f *file, heads, slots int) (*Shared, Place, bool) {
	low, high := rounded(heads)/granule, rounded(slots)/granule
	h, ok := f.used.takeLow(low)
	if !ok {
		return nil, Place{}, false
	}
	s, ok := f.used.takeHigh(high)
	if !ok {
		f.used.give(h, low)
		return nil, Place{}, false
	}
	f.parts++
	clear(f.memory.Mem[h*granule:][:heads])
	give := func() {
		f.used.give(h, low)
		f.used.give(s, high)
		p.leave(f)
	}
	return &Shared{FD: -1, Mem: f.memory.Mem, give: give}, Place{f.number, uint32(h * granule), uint32(s * granule)}, true
}

// leave counts one queue less in a file.
func (p *Pool) leave(f *file) {
	if f.parts--; f.parts > 0 {
		return
	}
	for i := range p.files {
		if p.files[i] == f {
			p.files = append(p.files[:i], p.files[i+1:]...)
			break
		}
	}
	size := len(f.memory.Mem)
	f.memory.Close()
	p.Give(size)
}

func rounded(n int) int { return (n + granule - 1) &^ (granule - 1) }

// room records which granules of a file are in use, one bit each.
type room struct {
	words     []uint64
	low, high int // all granules below low and from high on are in use
}

func newRoom(n int) room { return room{words: make([]uint64, (n+63)/64), high: n} }

func (r *room) has(i int) bool { return r.words[i>>6]>>(i&63)&1 != 0 }

// takeLow allocates the first n consecutive free granules.
func (r *room) takeLow(n int) (at int, ok bool) {
	run := 0
	for i := r.low; i < r.high; i++ {
		if run++; r.has(i) {
			run = 0
			continue
		}
		if run == n {
			r.mark(i+1-n, n)
			return i + 1 - n, true
		}
	}
	return 0, n == 0
}

// takeHigh allocates the last n consecutive free granules.
func (r *room) takeHigh(n int) (at int, ok bool) {
	run := 0
	for i := r.high - 1; i >= r.low; i-- {
		if run++; r.has(i) {
			run = 0
			continue
		}
		if run == n {
			r.mark(i, n)
			return i, true
		}
	}
	return 0, n == 0
}

func (r *room) mark(at, n int) {
	for i := at; i < at+n; i++ {
		r.words[i>>6] |= 1 << (i & 63)
	}
	for r.low < r.high && r.has(r.low) {
		r.low++
	}
	for r.high > r.low && r.has(r.high-1) {
		r.high--
	}
}

func (r *room) give(at, n int) {
	if n == 0 {
		return
	}
	for i := at; i < at+n; i++ {
		r.words[i>>6] &^= 1 << (i & 63)
	}
	r.low, r.high = min(r.low, at), max(r.high, at+n)
}
