package rdmap

import (
	"encoding/binary"

	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file implements immediate data (RFC 7306 section 6, docs/WIRE.md chapter 1): the last segment of a
// work request that has some. After a Write it is a message of its own, which takes a receive; after a Send
// it ends the Send's message.

func buildImmediate(b []byte, q *qp.QP, wr *qp.SendWR) int {
	d := wire.DDP{Last: true, Op: wire.OpImmediate, QN: wire.QueueSend, MSN: wire.MSN(wr.MSN)}
	if q.Type == abi.QPTypeXRCSend {
		d.STag = wire.STag(wr.STag)
	}
	if wr.Flags&abi.SendSolicited != 0 {
		d.Op = wire.OpImmediateSE
	}
	at := d.Put(b)
	body := immediateBody(wr.Immediate)
	return at + body.Put(b[at:])
}

// immediateBody keeps the four bytes in the order in which the program stored them.
func immediateBody(imm uint32) (body wire.Immediate) {
	binary.NativeEndian.PutUint32(body[:], imm)
	return body
}

// written counts the bytes of RDMA Write messages that arrive in order, because the completion of a Write
// with immediate has their length.
type written struct {
	n     uint32 // received bytes of the newest message
	ended bool   // that message is complete
}

func (w *written) add(n int, last bool) {
	if w.ended {
		w.n = 0
	}
	w.n += uint32(n)
	w.ended = last
}

// placeImmediate ends a Send if one is in progress, and otherwise takes a receive.
func (s *Stream) placeImmediate(d *wire.DDP, seg *Segment, at int) Verdict {
	if d.MSN != s.recvMSN {
		return refuse(wire.TermUntaggedMSN)
	}
	var body wire.Immediate
	b, code := bodyOf(seg, at, wire.ImmediateLen)
	if code != 0 {
		return refuse(code)
	}
	if _, err := body.Parse(b); err != nil {
		return refuse(codeOf(err))
	}
	q, imm, se := s.QP, binary.NativeEndian.Uint32(body[:]), d.Op.Solicited()
	if active, _ := q.Recv.Active(); active {
		v := q.PlaceSend(nil, 0)
		if v.Is == qp.Done {
			s.recvMSN = s.recvMSN.Add(1)
			v = q.EndSend(qp.Ending{HasImmediate: true, Immediate: imm, Solicited: se})
		}
		return s.sent(v)
	}
	v := q.EndWriteImmediate(uint32(d.STag), imm, s.written.n, se)
	if v.Is == qp.Done {
		s.recvMSN = s.recvMSN.Add(1)
		s.written = written{}
	}
	return verdict(v, &sends)
}

// bodyOf returns the body of a single-segment message, which is n bytes long. The segment's head must hold
// all of it, because the head is private memory.
func bodyOf(seg *Segment, at, n int) ([]byte, wire.TermCode) {
	switch {
	case len(seg.Data)-at > n:
		return nil, wire.TermUntaggedTooLong
	case len(seg.Head)-at < n:
		return nil, wire.TermOperationStream
	}
	return seg.Head[at : at+n], 0
}
