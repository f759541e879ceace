package mpa_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestHeadStart: a peer that is no urdmad has 50 ms before the first FPDU arrives, unless it sends first.
func TestHeadStart(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		w := world(t, enginetest.Options{})
		p, q, _ := connected(w, request(), enginetest.Param(4, ""))
		begun := w.Now()
		src, dst := q.Client.Register(64, rw), q.Client.Register(64, rw)
		q.Post(abi.SQE{WRID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled}, src.SGE(0, 64))
		if speaks {
			q.PostRecv(1, dst.SGE(0, 64))
			send := make([]byte, wire.UntaggedLen)
			d := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}
			d.Put(send)
			p.send(p.fpdu(send))
		}
		var sent clock.Time
		w.Until("the Send", time.Minute, func() bool { sent = w.Now(); return len(q.Send.Poll()) == 1 })
		p.segment()
		if waited := sent - begun; (waited < 40*clock.Millisecond) != speaks {
			t.Errorf("the first FPDU left after %v; the peer speaks first: %v", time.Duration(waited), speaks)
		}
	}
}

// TestAlwaysCRC: a port with "crc": "always" asks for CRCs and uses them, whatever the peer asks for.
func TestAlwaysCRC(t *testing.T) {
	send := func(p *peer, q *enginetest.QP) {
		p.crc = true
		src := q.Client.Register(4096, rw)
		q.Post(abi.SQE{WRID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled}, src.SGE(0, 4096))
		for n := 0; n < 4096; {
			n += len(p.segment()) - wire.UntaggedLen // segment checks the CRC
		}
	}
	t.Run("passive", func(t *testing.T) {
		w := world(t, enginetest.Options{CRC: true})
		p, q, _ := connected(w, request(), enginetest.Param(4, ""))
		send(p, q)
	})
	t.Run("active", func(t *testing.T) {
		w := world(t, enginetest.Options{CRC: true})
		l := listening(w)
		c := w.A.NewClient()
		q := c.NewQP(nil)
		c.Connect(c.Resolve(w.B.Addr, port), q, enginetest.Param(4, ""))
		p := l.accept()
		if m := p.reply(false); !m.CRC {
			t.Fatalf("request %+v", m)
		}
		p.frame(&wire.MPA{Reply: true, Revision: 2, Enhanced: true, IRD: 4, ORD: 4})
		send(p, q)
	})
}
