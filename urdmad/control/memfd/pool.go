package memfd

// A queue with a file of its own costs two mappings, four system calls and a page
// fault for each page on either side: more than all the rest of making one, and
// its head alone takes a page. So files are made for many queues of one client,
// and never of two. Heads, which are touched at once, lie at the beginning of such
// a file, slots and entries, which are touched with use, at its end.

// Pool is the memory of one client's queues. One goroutine uses it.
type Pool struct {
	// Take is asked before a file of some bytes is made and mapped, Give told when
	// it is gone.
	Take func(bytes int) error
	Give func(bytes int)

	files []*file // with free room or without, the oldest first
	made  uint32
}

// Sizes in bytes: files grow from leastFile to mostFile; a queue of more than
// MostPart has a file of its own.
const (
	granule   = 64 // a cache line
	leastFile = 64 << 10
	mostFile  = 1 << 20
	MostPart  = mostFile / 4
)

// Place is where a queue's memory lies: the number of the file, from 1, which no
// other of the client ever has, and offsets in bytes.
type Place struct{ File, Heads, Slots uint32 }

// file is one with room for many queues.
type file struct {
	number uint32
	memory *Shared
	used   room
	parts  int
}

// New gives a queue its heads, all zero, and its slots, with anything in them. The
// descriptor is there if the client has not been given this file before. The file
// goes with its last queue, which Close says.
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

// grow makes a file, of the least size if no more is to be had.
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

// part takes memory of a file, if there is enough.
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

// leave counts a queue less in a file.
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

// room is which granules of a file are in use, a bit each.
type room struct {
	words     []uint64
	low, high int // all below low, and all from high on, are in use
}

func newRoom(n int) room { return room{words: make([]uint64, (n+63)/64), high: n} }

func (r *room) has(i int) bool { return r.words[i>>6]>>(i&63)&1 != 0 }

// takeLow takes n neighbours, the first there are.
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

// takeHigh takes n neighbours, the last there are.
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
