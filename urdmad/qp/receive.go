package qp

import (
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// Receive is the receive work request that an arriving message fills.
type Receive struct {
	active   bool
	id       uint64
	index    uint32 // in the receive queue
	sges     []element
	nsge     int
	capacity uint32
	got      uint32
}

// Taken says what TakeReceive found.
type Taken uint8

const (
	ReceiveTaken Taken = iota
	NoReceive          // none is posted
	BadReceive         // the one posted was wrong, and has completed with the cause
)

// Receiving reports whether a message is under way, and how many of its bytes
// were scattered.
func (q *QP) Receiving() (active bool, got uint32) { return q.recv.active, q.recv.got }

// ReceiveRoom is how many bytes more the current receive takes.
func (q *QP) ReceiveRoom() uint32 { return q.recv.capacity - q.recv.got }

// TakeReceive begins the next receive work request.
func (q *QP) TakeReceive() Taken {
	var rqe abi.RQE
	list := q.t.list[:]
	i, ok := q.RQ.take(&rqe, list)
	if !ok {
		return NoReceive
	}
	q.RQ.checkLimit(q.t)
	r := &q.recv
	r.active, r.id, r.index, r.got, r.capacity, r.nsge = true, rqe.WRID, i, 0, 0, 0
	if rqe.NumSGE > q.RQ.maxSGE {
		q.EndReceive(abi.CQE{Status: abi.StatusLocQPOpErr}, false)
		return BadReceive
	}
	for j := range list[:rqe.NumSGE] {
		el := &list[j]
		if el.Length == 0 {
			continue
		}
		e, ok := q.hold(el, q.RQ.domain(q), mem.LocalWrite)
		if !ok {
			q.EndReceive(abi.CQE{Status: abi.StatusLocProtErr}, false)
			return BadReceive
		}
		r.sges[r.nsge] = e
		r.nsge++
		r.capacity += min(el.Length, ^uint32(0)-r.capacity)
	}
	return ReceiveTaken
}

// Scatter writes data, for which there is room, where the current receive goes
// on. False: memory of the receive was deregistered; nothing more may be
// written to it.
func (q *QP) Scatter(data []byte) bool {
	r := &q.recv
	ok := q.scatter(r.sges[:r.nsge], r.got, data)
	r.got += uint32(len(data))
	return ok
}

// MessageArrived ends a message that took a receive and completes it. how says
// the completion's flags and what they announce.
func (q *QP) MessageArrived(how abi.CQE, solicited bool) {
	q.Stats.MessagesRecv++
	q.Stats.BytesRecv += uint64(q.recv.got)
	q.EndReceive(how, solicited)
}

// WrittenWith is how a receive completes that a Write with immediate took: n bytes
// were written, not here.
func WrittenWith(imm, n uint32) abi.CQE {
	return abi.CQE{Opcode: abi.WCRecvRDMAWithImm, ByteLen: n, WCFlags: abi.WCWithImm, ImmOrSTag: imm}
}

// EndReceive completes the current receive; how says its status, VendorErr,
// WCFlags and what they announce, and ByteLen if its Opcode is one.
func (q *QP) EndReceive(how abi.CQE, solicited bool) {
	r := &q.recv
	w := q.completion(r.id, r.index, how.Status)
	w.VendorErr, w.WCFlags, w.ImmOrSTag = how.VendorErr, how.WCFlags, how.ImmOrSTag
	w.Opcode, w.ByteLen = abi.WCRecv, r.got
	if how.Opcode != 0 {
		w.Opcode, w.ByteLen = how.Opcode, how.ByteLen
	}
	r.drop()
	q.RQ.publish(r.index)
	q.Stats.RecvsPosted++
	q.completeRecv(&w, solicited)
}

func (r *Receive) drop() {
	for i := range r.sges[:r.nsge] {
		r.sges[i].region.Release()
		r.sges[i] = element{}
	}
	r.active, r.nsge = false, 0
}

const remoteRights = mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic

// Invalidate takes the peers' rights to a region away, as the peer asked (RFC
// 5040 section 5.3). The region must be one that peers could reach.
func (q *QP) Invalidate(stag mem.STag) mem.Violation {
	r := q.t.Regions.Lookup(stag)
	switch {
	case r == nil:
		return mem.NoRegion
	case r.PD != q.PD:
		return mem.OtherDomain
	case r.Access&remoteRights == 0:
		return mem.NoRight
	}
	r.Access &^= remoteRights
	return mem.Allowed
}
