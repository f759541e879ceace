package qp_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// drain is a queue pair of some type that sends 10 bytes at a time.
type drain struct {
	w       *enginetest.World
	q       *enginetest.QP
	from    *enginetest.Region
	wr      func(id uint64) abi.SQE
	receive func() // gives its peer a receive; nil where a send waits for none
}

func (d *drain) post(id uint64) { d.q.Post(d.wr(id), d.from.SGE(0, 10)) }

// drains makes a queue pair in RTS of each type that sends.
var drains = map[string]func(t *testing.T, local bool) *drain{
	"RC": func(t *testing.T, local bool) *drain {
		n := enginetest.NewNumberPair(t, local, linked.Path{})
		for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
			q[0].ReadyToReceive(q[1], enginetest.Attempt)
			q[0].ReadyToSend(enginetest.Attempt)
		}
		n.Exchange(100)
		return &drain{n.World, n.QA, n.MA, enginetest.Send, func() { n.QB.PostRecv(7, n.MB.SGE(0, 10)) }}
	},
	"UC": func(t *testing.T, local bool) *drain {
		u := enginetest.NewUCPair(t, local, enginetest.Options{})
		return &drain{u.World, u.QA, u.MA, enginetest.Send, nil}
	},
	"UD": func(t *testing.T, local bool) *drain {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		return &drain{u.World, u.QA, u.MA, u.ToB, nil}
	},
	"XRC_SEND": func(t *testing.T, local bool) *drain {
		s := newXRCScene(t, enginetest.Options{Seed: 7, RNRRetry: 7})
		host, receives := s.w.A, uint64(0)
		if local {
			host = s.w.B
		}
		q, target := host.NewClient().NewInitiator(), s.srq[0].Client.NewTarget(s.domain)
		for _, ends := range [][2]*enginetest.QP{{q, target}, {target, q}} {
			toRTS(ends[0], ends[1])
		}
		return &drain{s.w, q, q.Client.Register(100, enginetest.ReadWrite),
			func(id uint64) abi.SQE { return enginetest.SendTo(id, s.srq[0]) },
			func() { s.post(0, receives); receives++ }}
	},
}

// toRTS connects half of an extended reliable connection by number.
func toRTS(q, peer *enginetest.QP) {
	a, none := enginetest.Attempt, qp.IgnoredAttributes(q.Q.Type)
	a.DestQPNum, a.DGID, a.PortNum = peer.Q.QPN, peer.Client.Host.Addr.As16(), 1
	for _, move := range []struct{ state, mask uint32 }{{abi.QPSInit,
		abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags},
		{abi.QPSRTR, enginetest.RTRMask}, {abi.QPSRTS, enginetest.RTSMask}} {
		a.QPState = move.state
		q.MustModify(move.mask&^none, a)
	}
}

// drained checks that the program has heard of the drained send queue so many times.
func (d *drain) drained(n int) {
	d.w.T.Helper()
	events := d.q.Client.AsyncEvents()
	for _, e := range events {
		if e.EventType != abi.EventSQDrained {
			d.w.T.Fatalf("%+v", e)
		}
	}
	if len(events) != n {
		d.w.T.Fatalf("%d events of a drained send queue, expected %d", len(events), n)
	}
}

// idle checks that nothing completes.
func (d *drain) idle() {
	d.w.T.Helper()
	d.w.Pass(time.Second)
	if got := d.q.Send.Poll(); len(got) != 0 {
		d.w.T.Fatalf("completed: %+v", got)
	}
}

func (d *drain) state(to uint32) { d.q.MustModify(abi.QPMaskState, abi.QPAttr{QPState: to}) }

func (d *drain) toSQD() {
	d.q.MustModify(abi.QPMaskState|abi.QPMaskEnSQDAsyncNotify, abi.QPAttr{QPState: abi.QPSSQD, EnSQDAsyncNotify: 1})
}

// TestSQD: in SQD no send begins; the event says once, where it was asked for, that
// those begun are done; what was posted goes on in RTS, and is flushed in ERR.
func TestSQD(t *testing.T) {
	for name, make := range drains {
		t.Run(name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				d := make(t, local)
				if d.receive != nil {
					d.underWay(t)
				}
				d.toSQD()
				d.drained(1)
				d.post(3)
				d.idle()
				d.state(abi.QPSRTS)
				if d.receive != nil {
					d.receive()
				}
				enginetest.Expect(t, "in RTS", d.q.Send.Completions(1), []uint64{3}, abi.StatusSuccess)
				d.state(abi.QPSSQD)
				d.post(4)
				d.idle()
				d.state(abi.QPSErr)
				enginetest.Expect(t, "in ERR", d.q.Send.Completions(1), []uint64{4}, abi.StatusWRFlushErr)
				d.drained(0)
			})
		})
	}
}

// underWay drains a queue with a send that its peer has no receive for yet.
func (d *drain) underWay(t *testing.T) {
	d.post(1)
	d.w.Pass(time.Millisecond)
	d.toSQD()
	d.post(2)
	d.idle()
	d.drained(0)
	if !d.q.Q.SQ.Draining() {
		t.Error("a send is under way, and the queue is not draining")
	}
	d.receive()
	enginetest.Expect(t, "begun", d.q.Send.Completions(1), []uint64{1}, abi.StatusSuccess)
	d.receive()
	d.idle()
	d.drained(1)
	if d.q.Q.SQ.Draining() {
		t.Error("draining after its end")
	}
	d.state(abi.QPSRTS)
	enginetest.Expect(t, "held back", d.q.Send.Completions(1), []uint64{2}, abi.StatusSuccess)
	d.drained(0)
}
