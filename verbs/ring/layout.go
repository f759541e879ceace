package ring

import (
	"math/bits"

	"urdma/verbs/abi"
)

const (
	sqHeadBytes  = 128
	rqHeadBytes  = 128
	sqSlotHead   = 64
	rqSlotHead   = 16
	sgeBytes     = 16
	pageBytes    = 4096
	cacheLine    = 64
	cqHeadBytes  = 256
	cqEntryBytes = 64
)

// QPLayout computes the shared memory of a queue pair with the capacities in cap: rounds cap up to what the
// slots allow, and places the queues. A queue without work requests is absent. The heads, which are accessed
// before anything is posted, share a page.
func QPLayout(cap abi.QPCap) abi.QPResponse {
	r := abi.QPResponse{Cap: cap}
	r.SQ, r.Bytes = headLayout(r.Bytes, sqHeadBytes, cap.MaxSendWR, sqSlotHead+max(cap.MaxSendSGE*sgeBytes, cap.MaxInline))
	r.RQ, r.Bytes = headLayout(r.Bytes, rqHeadBytes, cap.MaxRecvWR, rqSlotHead+cap.MaxRecvSGE*sgeBytes)
	r.Bytes = placeSlots(&r.SQ, r.Bytes)
	r.Bytes = pageAlign(max(placeSlots(&r.RQ, r.Bytes), 1))
	if r.SQ.Entries > 0 {
		r.Cap.MaxInline = r.SQ.Stride - sqSlotHead
	}
	return r
}

// SRQLayout computes the shared memory of a shared receive queue of at least wrs
// work requests.
func SRQLayout(wrs, sge uint32) abi.SRQResponse {
	r := abi.SRQResponse{MaxWR: wrs, MaxSGE: sge}
	r.RQ, r.Bytes = headLayout(0, rqHeadBytes, wrs, rqSlotHead+sge*sgeBytes)
	r.Bytes = pageAlign(placeSlots(&r.RQ, r.Bytes))
	return r
}

// Heads returns how many bytes the heads of a queue pair's queues take at the beginning of its memory.
func Heads(r *abi.QPResponse) uint32 {
	n := uint32(0)
	if r.SQ.Entries > 0 {
		n += sqHeadBytes
	}
	if r.RQ.Entries > 0 {
		n += rqHeadBytes
	}
	return n
}

// Used returns how many bytes of a queue pair's memory its queues take, heads included.
func Used(r *abi.QPResponse) uint32 {
	return max(r.SQ.SlotsOffset+r.SQ.Entries*r.SQ.Stride, r.RQ.SlotsOffset+r.RQ.Entries*r.RQ.Stride)
}

// PlaceQP sets the positions of the heads and slots of a queue pair in a file of so many bytes.
func PlaceQP(r *abi.QPResponse, heads, slots, bytes uint32) {
	from := Heads(r)
	for _, q := range []*abi.QueueLayout{&r.SQ, &r.RQ} {
		if q.Entries > 0 {
			q.HeadOffset, q.SlotsOffset = q.HeadOffset+heads, q.SlotsOffset-from+slots
		}
	}
	r.Bytes = bytes
}

// PlaceCQ does the same for a completion queue, whose entries need not follow its head.
func PlaceCQ(r *abi.CQResponse, head, entries, bytes uint32) {
	r.RingOffset, r.EntriesOffset, r.Bytes = head, entries-head, bytes
}

// headLayout places a queue's head at an offset and returns where it ends.
func headLayout(at, head, wrs, slot uint32) (l abi.QueueLayout, end uint32) {
	if wrs == 0 {
		return l, at
	}
	return abi.QueueLayout{HeadOffset: at, Entries: powerOfTwo(wrs), Stride: stride(slot)}, at + head
}

// placeSlots places the slots of a queue, if it exists, and returns where they end.
func placeSlots(l *abi.QueueLayout, at uint32) (end uint32) {
	if l.Entries == 0 {
		return at
	}
	l.SlotsOffset = at
	return at + l.Entries*l.Stride
}

// CQLayout computes the shared memory of a completion queue of at least cqe
// entries.
func CQLayout(cqe uint32) abi.CQResponse {
	n := entries(cqe)
	return abi.CQResponse{
		Entries:       n,
		EntriesOffset: cqHeadBytes,
		Bytes:         pageAlign(cqHeadBytes + n*cqEntryBytes),
	}
}

func stride(n uint32) uint32 { return max(cacheLine, powerOfTwo(n)) }

func entries(n uint32) uint32 { return powerOfTwo(max(n, 1)) }

func powerOfTwo(n uint32) uint32 { return 1 << bits.Len32(n-1) }

func pageAlign(n uint32) uint32 { return (n + pageBytes - 1) &^ (pageBytes - 1) }
