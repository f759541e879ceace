package memif

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// A ring in shared memory, in net_memif's layout (all little-endian; this package runs on little-endian
// machines only, see ringAt):
//
//	  0  cookie  uint32
//	  4  flags   uint16   bit 0: the consumer wants no interrupt
//	  6  head    uint16
//	 64  tail    uint16
//	128  descriptors of 16 bytes: flags uint16, region uint16, length uint32,
//	     offset uint32, metadata uint32
//
// Client to server: head counts frames that the client has filled in, tail those that the server has finished
// with. Server to client: head counts empty buffers that the client has posted, tail those that the server
// has filled. So only the client writes head and only the server writes tail. The consumer writes flags: in
// the first ring the server, in the second the client.
//
// Ordering: an index is published by an atomic add or store after its descriptors and frames are written; the
// other side loads it atomically before it reads them. Go's atomics are sequentially consistent. So "publish
// the index, then load flags" here pairs with "clear the mask, then load the index" of a peer that is about
// to sleep: one of the two sees the other, and no wake-up is lost.
const (
	ringHeader   = 128
	descSize     = 16
	flagsMaskInt = 1
	descNext     = 1 // descriptor flag: the frame continues in the next slot
)

type ring struct {
	// cookieWord is written by the client before it announces the ring.
	cookieWord *uint32
	// flagsHead has flags in its low and head in its high half, because Go has no 16-bit atomics and
	// different sides may write the halves. It is only changed by read-modify-write operations that keep the
	// other half. The other side's load of head is in head(), the producer's load of flags in masked().
	flagsHead *uint32
	// tailWord has tail in its low half; the rest is padding. The other side's load is in tail().
	tailWord *uint32
	desc     []rawDesc
	mask     uint16
}

// rawDesc is a descriptor as two words, so that each is loaded exactly once.
type rawDesc struct{ lo, hi uint64 }

// desc is a private copy of a descriptor, not yet checked.
type desc struct {
	flags, region  uint16
	length, offset uint32
}

// ringBytes returns the size of a ring with 1<<log2 slots.
func ringBytes(log2 uint8) int { return ringHeader + descSize<<log2 }

// ringAt finds a ring in a mapped region.
func ringAt(mem []byte, offset uint32, log2 uint8) (r ring, err error) {
	probe := uint16(1)
	if *(*byte)(unsafe.Pointer(&probe)) != 1 {
		return r, fmt.Errorf("memif: needs a little-endian machine")
	}
	if log2 < minLog2Ring || log2 > maxLog2Ring {
		return r, fmt.Errorf("memif: ring of 2^%d slots, allowed are 2^%d to 2^%d", log2, minLog2Ring, maxLog2Ring)
	}
	if offset%8 != 0 {
		return r, fmt.Errorf("memif: ring at offset %d, which is no multiple of 8", offset)
	}
	b, ok := span(mem, offset, uint32(ringBytes(log2)))
	if !ok {
		return r, fmt.Errorf("memif: ring of 2^%d slots at offset %d is outside its region of %d bytes", log2, offset,
			len(mem))
	}
	base := unsafe.Pointer(unsafe.SliceData(b))
	return ring{
		cookieWord: (*uint32)(base),
		flagsHead:  (*uint32)(unsafe.Add(base, 4)),
		tailWord:   (*uint32)(unsafe.Add(base, 64)),
		desc:       unsafe.Slice((*rawDesc)(unsafe.Add(base, ringHeader)), 1<<log2),
		mask:       1<<log2 - 1,
	}, nil
}

func (r *ring) size() uint16 { return r.mask + 1 }

// format initialises an empty ring. Only the client calls it, before it announces the ring to the server.
func (r *ring) format() {
	clear(r.desc)
	atomic.StoreUint32(r.tailWord, 0)
	atomic.StoreUint32(r.flagsHead, flagsMaskInt)
	atomic.StoreUint32(r.cookieWord, cookie)
}

func (r *ring) cookie() uint32 { return atomic.LoadUint32(r.cookieWord) }

// head loads the client's index (acquire; partner: advanceHead).
func (r *ring) head() uint16 { return uint16(atomic.LoadUint32(r.flagsHead) >> 16) }

// tail loads the server's index (acquire; partner: setTail).
func (r *ring) tail() uint16 { return uint16(atomic.LoadUint32(r.tailWord)) }

// advanceHead publishes n more slots (release; partner: head). The carry out of the high half is
// intentionally lost.
func (r *ring) advanceHead(n uint16) { atomic.AddUint32(r.flagsHead, uint32(n)<<16) }

// setTail publishes the server's index (release; partner: tail).
func (r *ring) setTail(t uint16) { atomic.StoreUint32(r.tailWord, uint32(t)) }

// zeroHead clears the client's index when a link starts, as net_memif does on both sides.
func (r *ring) zeroHead() { atomic.AndUint32(r.flagsHead, 0xffff) }

// maskInterrupt masks or unmasks the interrupt (partner: masked).
func (r *ring) maskInterrupt(on bool) {
	if on {
		atomic.OrUint32(r.flagsHead, flagsMaskInt)
	} else {
		atomic.AndUint32(r.flagsHead, ^uint32(flagsMaskInt))
	}
}

// masked reports whether the consumer wants no interrupt.
func (r *ring) masked() bool { return atomic.LoadUint32(r.flagsHead)&flagsMaskInt != 0 }

// load takes a private copy of the descriptor of a slot.
func (r *ring) load(slot uint16) desc {
	d := &r.desc[slot&r.mask]
	lo, hi := atomic.LoadUint64(&d.lo), atomic.LoadUint64(&d.hi)
	return desc{flags: uint16(lo), region: uint16(lo >> 16), length: uint32(lo >> 32), offset: uint32(hi)}
}

// store writes a whole descriptor, which becomes visible when the index is published.
func (r *ring) store(slot uint16, d desc) {
	p := &r.desc[slot&r.mask]
	p.lo = uint64(d.flags) | uint64(d.region)<<16 | uint64(d.length)<<32
	p.hi = uint64(d.offset)
}

// storeLength writes flags, region and length and does not change the offset, which the peer wrote.
func (r *ring) storeLength(slot uint16, d desc) {
	r.desc[slot&r.mask].lo = uint64(d.flags) | uint64(d.region)<<16 | uint64(d.length)<<32
}
