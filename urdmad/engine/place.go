package engine

import (
	"errors"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/wire"
)

// deliver takes the next segment in order: checks it, places it, completes what
// it completes. A segment that is wrong ends the connection with the Terminate
// that RFC 5040 section 4.8 names, before a byte of it is placed.
//
// It reports false for a message that has to wait for a receive.
func (c *Conn) deliver(psn wire.PSN, s *segment) bool {
	c.placing, c.placingPSN = true, psn
	done := c.deliverSegment(psn, s)
	c.placing = false
	return done
}

func (c *Conn) deliverSegment(psn wire.PSN, s *segment) bool {
	var d wire.DDP
	at, err := d.Parse(s.head)
	code := wire.TermCode(0)
	if err != nil {
		code = codeOf(err)
	} else {
		code = c.place(&d, s, at)
	}
	if code == wire.TermUntaggedNoBuffer && d.Op.IsSend() && c.mayWait(psn, c.RNRRetry) {
		return false
	}
	if code != 0 {
		c.refuse(psn, code, s, at, d.Op)
		return true
	}
	c.e.Stats.SegmentsPlaced++
	return true
}

func codeOf(err error) wire.TermCode {
	var p *wire.ProtocolError
	if errors.As(err, &p) {
		return p.Code
	}
	return wire.TermOperationUnspecified
}

// place carries out one segment; it returns 0 or the cause of a Terminate.
func (c *Conn) place(d *wire.DDP, s *segment, at int) wire.TermCode {
	switch d.Op {
	case wire.OpWrite:
		return c.placeWrite(d, s.data[at:])
	case wire.OpSend, wire.OpSendInv, wire.OpSendSE, wire.OpSendSEInv:
		return c.placeSend(d, s.data[at:])
	case wire.OpReadRequest:
		return c.readRequested(d, s, at)
	case wire.OpReadResponse:
		return c.placeReadResponse(d, s.data[at:])
	}
	return wire.TermOperationOpcode
}

// placeWrite is an RDMA Write segment. A zero-length Write touches nothing and
// its STag is not looked at (RFC 5040 section 5.4).
func (c *Conn) placeWrite(d *wire.DDP, data []byte) wire.TermCode {
	if len(data) == 0 {
		return 0
	}
	qp := c.qp
	r := qp.lastRegion
	if r == nil || r.STag != d.STag || r.Dead() {
		r = c.e.mrs.Lookup(d.STag)
		qp.lastRegion = r
	}
	if code := r.CheckTagged(qp.PD, d.TO, uint64(len(data)), mem.RemoteWrite, false); code != 0 {
		return code
	}
	c.e.store(qp, r, d.TO, data)
	qp.Stats.BytesRecv += uint64(len(data))
	if d.Last {
		c.e.writeArrived(qp)
	}
	return 0
}

// placeEarly places an RDMA Write segment that came out of order, as RFC 5041
// section 5.3 allows. It is placed again in its turn, so that overlapping Writes
// end as they were posted; an error waits for its turn too.
func (c *Conn) placeEarly(s *segment) {
	var d wire.DDP
	if at, err := d.Parse(s.head); err == nil && d.Op == wire.OpWrite {
		_ = c.placeWrite(&d, s.data[at:])
	}
}

// store writes data to client memory by whichever path the region has.
func (e *Engine) store(qp *QP, r *mem.Region, va uint64, data []byte) {
	if b := r.Bytes(va, uint64(len(data))); b != nil {
		copy(b, data)
		return
	}
	e.placeFallback(qp, r, va, data)
}

// placeSend is a segment of a Send message: queue 0, in order.
func (c *Conn) placeSend(d *wire.DDP, data []byte) wire.TermCode {
	qp := c.qp
	if d.MSN != qp.recvMSN {
		return wire.TermUntaggedMSN
	}
	if !qp.recv.active {
		if d.MO != 0 {
			return wire.TermUntaggedMO
		}
		if code := c.e.takeReceive(qp); code != 0 {
			return code
		}
	}
	if d.MO != qp.recv.got {
		return wire.TermUntaggedMO
	}
	if uint64(qp.recv.got)+uint64(len(data)) > uint64(qp.recv.capacity) {
		c.e.endReceive(qp, abi.CQE{Status: abi.StatusLocLenErr, VendorErr: uint32(wire.TermUntaggedTooLong)}, false)
		return wire.TermUntaggedTooLong
	}
	c.e.scatter(qp, data)
	if !d.Last {
		return 0
	}
	return c.e.sendArrived(qp, d.Op.Invalidates(), d.STag, d.Op.Solicited())
}

// sendArrived ends a Send message: invalidates what it names and completes the
// receive.
func (e *Engine) sendArrived(qp *QP, invalidates bool, stag wire.STag, solicited bool) wire.TermCode {
	cqe := abi.CQE{Status: abi.StatusSuccess}
	if invalidates {
		if code := e.invalidate(qp, stag); code != 0 {
			e.endReceive(qp, abi.CQE{Status: abi.StatusGeneralErr, VendorErr: uint32(code)}, false)
			return code
		}
		cqe.WCFlags, cqe.ImmOrSTag = abi.WCWithInv, uint32(stag)
	}
	qp.Stats.MessagesRecv++
	qp.Stats.BytesRecv += uint64(qp.recv.got)
	qp.recvMSN = qp.recvMSN.Add(1)
	e.endReceive(qp, cqe, solicited)
	return 0
}

// invalidate takes the peers' rights to a region away (RFC 5040 section 5.3).
// The region must be one that peers could reach.
func (e *Engine) invalidate(qp *QP, stag wire.STag) wire.TermCode {
	r := e.mrs.Lookup(stag)
	switch {
	case r == nil:
		return wire.TermProtectionSTag
	case r.PD != qp.PD:
		return wire.TermProtectionStream
	case r.Access&(abi.AccessRemoteRead|abi.AccessRemoteWrite|abi.AccessRemoteAtomic) == 0:
		return wire.TermProtectionInvalidate
	}
	r.Access &^= abi.AccessRemoteRead | abi.AccessRemoteWrite | abi.AccessRemoteAtomic
	return 0
}

// takeReceive begins the next receive work request.
func (e *Engine) takeReceive(qp *QP) wire.TermCode {
	prod, err := qp.Ring.RQ.Prod(qp.rqHead)
	if err != nil || prod == qp.rqHead {
		return wire.TermUntaggedNoBuffer
	}
	var rqe abi.RQE
	var elements [maxSGE]abi.SGE
	qp.Ring.RQ.Read(qp.rqHead, &rqe, elements[:])
	r := &qp.recv
	r.active, r.id, r.got, r.capacity, r.nsge = true, rqe.WRID, 0, 0, 0
	if rqe.NumSGE > qp.Cap.MaxRecvSGE {
		e.endReceive(qp, abi.CQE{Status: abi.StatusLocQPOpErr}, false)
		return wire.TermDDPCatastrophic
	}
	for _, el := range elements[:rqe.NumSGE] {
		if el.Length == 0 {
			continue
		}
		reg := e.mrs.Lookup(wire.STag(el.LKey))
		if !reg.CheckLocal(qp.PD, el.Addr, uint64(el.Length), mem.LocalWrite) {
			e.endReceive(qp, abi.CQE{Status: abi.StatusLocProtErr}, false)
			return wire.TermDDPCatastrophic
		}
		reg.Hold()
		r.sges[r.nsge] = sge{region: reg, va: el.Addr, n: el.Length, bytes: reg.Bytes(el.Addr, uint64(el.Length))}
		r.nsge++
		r.capacity += min(el.Length, ^uint32(0)-r.capacity)
	}
	return 0
}

// scatter writes data at the position that the current receive has reached.
func (e *Engine) scatter(qp *QP, data []byte) {
	r := &qp.recv
	e.scatterTo(qp, r.sges[:r.nsge], r.got, data)
	r.got += uint32(len(data))
}

// scatterTo writes data into a scatter list from byte off on; the list has room.
func (e *Engine) scatterTo(qp *QP, list []sge, off uint32, data []byte) {
	for i := range list {
		s := &list[i]
		if off >= s.n {
			off -= s.n
			continue
		}
		n := min(len(data), int(s.n-off))
		if s.bytes != nil {
			copy(s.bytes[off:], data[:n])
		} else {
			e.placeFallback(qp, s.region, s.va+uint64(off), data[:n])
		}
		if data = data[n:]; len(data) == 0 {
			return
		}
		off = 0
	}
}

// endReceive completes the current receive; how says its status, VendorErr,
// WCFlags and what they announce.
func (e *Engine) endReceive(qp *QP, how abi.CQE, solicited bool) {
	w := qp.completion(qp.recv.id, qp.rqHead, how.Status)
	w.VendorErr, w.WCFlags, w.ImmOrSTag = how.VendorErr, how.WCFlags, how.ImmOrSTag
	w.Opcode, w.ByteLen = abi.WCRecv, qp.recv.got
	qp.dropReceive()
	qp.rqHead++
	qp.Ring.RQ.PublishCons(qp.rqHead)
	qp.Stats.RecvsPosted++
	e.completeRecv(qp, &w, solicited)
}

func (qp *QP) dropReceive() {
	r := &qp.recv
	for i := range r.sges[:r.nsge] {
		r.sges[i].region.Release()
		r.sges[i] = sge{}
	}
	r.active, r.nsge = false, 0
}
