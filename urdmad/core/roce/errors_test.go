package roce_test

import (
	"errors"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

func connected(t *testing.T, retries uint32) *enginetest.NumberPair {
	n := enginetest.ConnectedPairIn(enginetest.New(t, enginetest.Options{Seed: 5, RoCE: true}), false, retries)
	n.MB = n.QB.Client.Register(1<<20, enginetest.ReadWrite|mem.RemoteAtomic)
	n.Exchange(100)
	return n
}

// TestRefusals: a refused request fails at the sender with the status for its cause; earlier requests
// complete, and later ones are flushed.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		post   func(n *enginetest.NumberPair)
		status uint32
		event  uint32 // at the responder; 0: none
		why    reason.Number
	}{
		{"Write to no region", func(n *enginetest.NumberPair) {
			w := enginetest.Write(1, n.MB, 0)
			w.RKey ^= 0x100
			n.QA.Post(w, n.MA.SGE(0, 3000))
		}, abi.StatusRemAccessErr, qp.EventAccess, reason.NAKAccess},
		{"Write past the end", func(n *enginetest.NumberPair) {
			n.QA.Post(enginetest.Write(1, n.MB, len(n.MB.Bytes)-2999), n.MA.SGE(0, 3000))
		}, abi.StatusRemAccessErr, qp.EventAccess, reason.NAKAccess},
		{"Read of no region", func(n *enginetest.NumberPair) {
			w := enginetest.Read(1, n.MB, 0)
			w.RKey ^= 0x100
			n.QA.Post(w, n.MA.SGE(0, 3000))
		}, abi.StatusRemAccessErr, qp.EventAccess, reason.NAKAccess},
		{"atomic at an odd address", func(n *enginetest.NumberPair) {
			n.QA.Post(enginetest.FetchAdd(1, n.MB, 4, 1), n.MA.SGE(0, 8))
		}, abi.StatusRemInvReqErr, qp.EventRequest, reason.NAKInvalid},
		{"Send that is too long", func(n *enginetest.NumberPair) {
			n.QB.PostRecv(9, n.MB.SGE(0, 2000))
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
		}, abi.StatusRemInvReqErr, qp.EventRequest, reason.NAKInvalid},
		{"Send without a receive", func(n *enginetest.NumberPair) {
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
		}, abi.StatusRNRRetryExcErr, 0, reason.NotReady},
		{"nobody answers", func(n *enginetest.NumberPair) {
			n.QA.Send.Completions(1)
			n.B.Stop()
			n.QA.Post(enginetest.Write(1, n.MB, 0), n.MA.SGE(0, 3000))
		}, abi.StatusRetryExcErr, 0, reason.Silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := connected(t, 2)
			n.QA.Post(enginetest.Write(0, n.MB, 0), n.MA.SGE(0, 5000))
			c.post(n)
			if c.status != abi.StatusRetryExcErr {
				n.QA.Post(enginetest.Write(2, n.MB, 0), n.MA.SGE(0, 100))
			}
			var got []uint32
			vendor := uint32(0) // of the failed one
			n.Until("completions", 60*time.Second, func() bool {
				for _, e := range n.QA.Send.Poll() {
					got = append(got, e.Status)
					if e.Status == c.status {
						vendor = e.VendorErr
					}
				}
				return n.QA.Q.State() == abi.QPSErr
			})
			want := []uint32{abi.StatusSuccess, c.status, abi.StatusWRFlushErr}
			if c.status == abi.StatusRetryExcErr {
				want = want[1:2]
			}
			for _, e := range n.QA.Send.Poll() {
				got = append(got, e.Status)
			}
			if len(got) != len(want) {
				t.Fatalf("statuses %v, expected %v", got, want)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("statuses %v, expected %v", got, want)
				}
			}
			if vendor != uint32(c.why) || n.QA.Q.Why() != c.why {
				t.Errorf("vendor_err %v, reason %v, expected %v", reason.Number(vendor), n.QA.Q.Why(), c.why)
			}
			if c.event == 0 {
				return
			}
			n.Until("the responder's end", time.Second, func() bool { return n.QB.Q.State() == abi.QPSErr })
			if ev := n.QB.Client.AsyncEvents(); len(ev) == 0 || ev[len(ev)-1].EventType != c.event {
				t.Errorf("events %+v, expected %d", ev, c.event)
			}
			if n.QB.Q.Why() != c.why {
				t.Errorf("the responder's reason is %v, expected %v", n.QB.Q.Why(), c.why)
			}
		})
	}
}

// TestUnready: a message that arrives before any receive was posted is recorded.
func TestUnready(t *testing.T) {
	n := enginetest.ConnectedPairIn(enginetest.New(t, enginetest.Options{Seed: 5, RoCE: true}), false, qp.RNRForever)
	n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
	n.Pass(20 * time.Millisecond)
	if !n.QB.Q.Unready() || n.QA.Q.Unready() {
		t.Errorf("receiver %t, sender %t", n.QB.Q.Unready(), n.QA.Q.Unready())
	}
}

// TestReceiverNotReady: a message waits for its receive, by RNR NAKs, and so do later messages.
func TestReceiverNotReady(t *testing.T) {
	n := connected(t, qp.RNRForever)
	n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
	n.QA.Post(enginetest.WithImmediate(enginetest.Write(2, n.MB, 8000), 0x1234), n.MA.SGE(0, 3000))
	n.Pass(20 * time.Millisecond)
	if n.B.Engine.RoCE.Stats.RC.RNRSaid < 3 || n.A.Engine.RoCE.Stats.RC.RNRHeard < 3 {
		t.Errorf("%+v", n.B.Engine.RoCE.Stats)
	}
	if n.QB.Q.Unready() {
		t.Error("a receive was posted before the first message")
	}
	n.QB.PostRecv(7, n.MB.SGE(0, 4000))
	n.QB.PostRecv(8, n.MB.SGE(0, 4000))
	if got := n.QB.Recv.Completions(2); got[0].WRID != 7 || got[0].ByteLen != 3000 || got[1].WRID != 8 ||
		got[1].ImmOrSTag != 0x1234 || got[1].ByteLen != 3000 {
		t.Errorf("%+v", got)
	}
	n.QA.Send.Completions(2)
}

// TestAtomics: each atomic is executed once, and returns the original value.
func TestAtomics(t *testing.T) {
	n := connected(t, 7)
	for i := range 3 {
		n.QA.Post(enginetest.FetchAdd(uint64(i), n.MB, 64, 5), n.MA.SGE(8*i, 8))
	}
	n.QA.Post(enginetest.CmpSwap(3, n.MB, 64, 0, 99), n.MA.SGE(24, 8))
	n.QA.Send.Completions(4)
	before := n.MB.Bytes[64]
	n.QA.Post(enginetest.FetchAdd(4, n.MB, 64, 0), n.MA.SGE(32, 8))
	n.QA.Send.Completions(1)
	if a := n.MA.Bytes; a[8]-a[0] != 5 || a[16]-a[8] != 5 || a[24]-a[16] != 5 || a[32] != before {
		t.Errorf("found % x", a[:40])
	}
}

// TestPathMTU: a path MTU for which the port's packets have no room is refused.
func TestPathMTU(t *testing.T) {
	n := enginetest.NumberPairIn(enginetest.New(t, enginetest.Options{RoCE: true}), false)
	a := enginetest.Attempt
	a.PathMTU, a.QPState, a.DestQPNum, a.DGID = 4, abi.QPSRTR, n.QB.Q.QPN, n.B.Addr.As16()
	if err := n.A.Numbers.Modify(n.QA.Q, 0, enginetest.RTRMask, &a); !errors.Is(err, qp.ErrAttribute) {
		t.Errorf("path MTU 2048 at MTU 1500: %v", err)
	}
}

// TestReset: a queue pair that is reset connects again.
func TestReset(t *testing.T) {
	n := connected(t, 7)
	for _, q := range []*enginetest.QP{n.QA, n.QB} {
		q.ToInit()
	}
	for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
		q[0].ReadyToReceive(q[1], enginetest.Attempt)
		q[0].ReadyToSend(enginetest.Attempt)
	}
	n.Exchange(5000)
}

// TestDeregistered: the memory of a message, or of an answer, may be deregistered during the transfer.
func TestDeregistered(t *testing.T) {
	n := connected(t, 7)
	n.QA.Post(enginetest.Read(1, n.MB, 0), n.MA.SGE(0, 500_000))
	n.Until("the Read is under way", time.Second, func() bool { return n.QB.Q.Carrier().Serving() > 0 })
	n.B.Do(n.MB.Deregister)
	if got := n.QA.Send.Completions(1); got[0].Status != abi.StatusRemAccessErr {
		t.Errorf("%+v", got)
	}
}

// TestRefusedWriteImmediate: a Write with immediate data whose rkey is wrong takes no receive: the receive is flushed
// with the others.
func TestRefusedWriteImmediate(t *testing.T) {
	for _, size := range []int{100, 3000} {
		n := connected(t, 2)
		n.QB.PostRecv(7)
		n.QB.PostRecv(8)
		w := enginetest.WithImmediate(enginetest.Write(1, n.MB, 0), 9)
		w.RKey ^= 0x100
		n.QA.Post(w, n.MA.SGE(0, size))
		enginetest.Expect(t, "sender", n.QA.Send.Completions(1), []uint64{1}, abi.StatusRemAccessErr)
		enginetest.Expect(t, "receiver", n.QB.Recv.Completions(2), []uint64{7, 8}, abi.StatusWRFlushErr, abi.StatusWRFlushErr)
		if ev := n.QB.Client.AsyncEvents(); len(ev) != 1 || ev[0].EventType != qp.EventAccess {
			t.Errorf("asynchronous events %+v", ev)
		}
	}
}
