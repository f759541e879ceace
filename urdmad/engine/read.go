package engine

import (
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file is RDMA Read from both sides: the responder queues requests and
// segment.go sends the responses; the requester collects them.

// readRequested queues a peer's Read (RFC 5040 section 5.2).
func (c *Conn) readRequested(d *wire.DDP, s *segment, at int) wire.TermCode {
	qp := c.qp
	if d.MSN != qp.reqMSN {
		return wire.TermUntaggedMSN
	}
	if len(s.head)-at < min(len(s.data)-at, wire.ReadRequestLen) {
		return wire.TermOperationStream
	}
	body := s.head[at:]
	if len(s.data)-at > wire.ReadRequestLen {
		return wire.TermUntaggedTooLong
	}
	var req wire.ReadRequest
	if _, err := req.Parse(body); err != nil {
		return codeOf(err)
	}
	if int(qp.irqTail-qp.irqHead) >= int(c.IRD) {
		return wire.TermUntaggedNoBuffer // more Reads than IRD (RFC 5040 section 5.2)
	}
	return c.e.queueRead(qp, &req)
}

// queueRead checks the source and puts the response in line.
func (e *Engine) queueRead(qp *QP, req *wire.ReadRequest) wire.TermCode {
	rr := readResponse{length: req.Length, va: req.SrcTO, sinkSTag: req.SinkSTag, sinkTO: req.SinkTO}
	if req.Length > 0 {
		r := e.mrs.Lookup(req.SrcSTag)
		if code := r.CheckTagged(qp.PD, req.SrcTO, uint64(req.Length), mem.RemoteRead, true); code != 0 {
			return code
		}
		r.Hold()
		rr.region = r
		rr.src = r.Bytes(req.SrcTO, uint64(req.Length))
	} else {
		rr.src = []byte{}
	}
	slot := &qp.irq[qp.irqTail&uint32(len(qp.irq)-1)]
	*slot = rr
	qp.irqTail++
	qp.reqMSN = qp.reqMSN.Add(1)
	if rr.src == nil {
		e.stageRead(qp, slot)
	}
	return 0
}

func (qp *QP) readResponse(i uint32) *readResponse { return &qp.irq[i&uint32(len(qp.irq)-1)] }

// popReadResponse forgets the oldest response.
func (qp *QP) popReadResponse() {
	rr := qp.readResponse(qp.irqHead)
	if rr.region != nil {
		rr.region.Release()
	}
	*rr = readResponse{}
	qp.irqHead++
}

// The requester advertises a sink STag that names the work request, not memory:
// the slot's index with a generation in the upper half. A peer can answer only
// Reads that were asked, and the scatter list may have any number of elements.

func (qp *QP) sinkSTag(i uint32) wire.STag { return wire.STag(i ^ qp.QPN<<8) }

// placeReadResponse is a segment of the answer to one of our Reads.
func (c *Conn) placeReadResponse(d *wire.DDP, data []byte) wire.TermCode {
	qp := c.qp
	i := uint32(d.STag) ^ qp.QPN<<8
	if i-qp.sqHead >= qp.sqTail-qp.sqHead {
		return wire.TermTaggedSTag
	}
	wr := qp.wr(i)
	if wr.op != abi.WRRDMARead || wr.state != wrSent || wr.answered {
		return wire.TermTaggedSTag
	}
	if d.TO != uint64(wr.readGot) || uint64(len(data)) > uint64(wr.length-wr.readGot) {
		return wire.TermTaggedBounds
	}
	if d.Last != (wr.readGot+uint32(len(data)) == wr.length) {
		return wire.TermTaggedBounds
	}
	c.e.scatterTo(qp, qp.wrSGE(i)[:wr.nsge], wr.readGot, data)
	wr.readGot += uint32(len(data))
	qp.Stats.BytesRecv += uint64(len(data))
	if d.Last {
		c.e.readDone(qp, wr)
	}
	return 0
}

// readDone notes that all of a Read has arrived.
func (e *Engine) readDone(qp *QP, wr *sendWR) {
	wr.answered = true
	wr.asyncUntil = qp.asyncIssued
	qp.readsOut--
	e.completeSends(qp)
	e.runq.add(qp) // a Read or a fence may have waited for this one
}
