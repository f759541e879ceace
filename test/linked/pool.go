package linked

import "fmt"

// owner is the present owner of a buffer.
type owner uint8

const (
	ownedPool owner = iota // free
	ownedRing              // received, waiting for Rx
	ownedRx                // the caller, from Rx
	ownedTx                // the caller, from Alloc
	ownedWire              // passed to Tx
	owners
)

// poison overwrites a buffer that the caller gives back, so that a later read returns garbage.
const poison = 0xdb

// pool has a port's buffers and their owners.
type pool struct {
	size   int
	bytes  [][]byte
	owner  []owner
	order  []uint64 // for ownedTx buffers: their position in the order of allocation
	free   []uint32
	counts [owners]int
	misuse func(string)
}

func newPool(buffers, size int, misuse func(string)) pool {
	p := pool{
		size: size, misuse: misuse,
		bytes: make([][]byte, buffers), owner: make([]owner, buffers),
		order: make([]uint64, buffers), free: make([]uint32, buffers),
	}
	for i := range p.free {
		p.free[i] = uint32(buffers - 1 - i)
	}
	p.counts[ownedPool] = buffers
	return p
}

func (p *pool) count(o owner) int { return p.counts[o] }

func (p *pool) take(o owner) (buf uint32, ok bool) {
	if len(p.free) == 0 {
		return 0, false
	}
	buf = p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	if p.bytes[buf] == nil {
		p.bytes[buf] = make([]byte, p.size)
	}
	p.move(buf, o)
	return buf, true
}

func (p *pool) move(buf uint32, to owner) {
	p.counts[p.owner[buf]]--
	p.counts[to]++
	p.owner[buf] = to
}

func (p *pool) put(buf uint32) {
	b := p.bytes[buf]
	for i := range b {
		b[i] = poison
	}
	p.move(buf, ownedPool)
	p.free = append(p.free, buf)
}

// owned returns the buffer of a packet's Ref and checks that it has one of the given owners. Otherwise it reports the
// misuse, and ok is false.
func (p *pool) owned(ref uintptr, doing string, want ...owner) (buf uint32, ok bool) {
	if ref == 0 || ref > uintptr(len(p.owner)) {
		p.misuse(fmt.Sprintf("%s: Ref %d is no buffer of this port", doing, ref))
		return 0, false
	}
	buf = uint32(ref - 1)
	for _, o := range want {
		if p.owner[buf] == o {
			return buf, true
		}
	}
	p.misuse(fmt.Sprintf("%s: buffer %d is not the caller's (state %d)", doing, buf, p.owner[buf]))
	return 0, false
}
