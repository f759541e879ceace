package engine_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/engine/enginetest"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

// numbered are two queue pairs whose programs connect them by number.
type numbered struct {
	*enginetest.World
	a, b   *enginetest.QP
	ma, mb *enginetest.Region
}

func newNumbered(t *testing.T, local bool, path linked.Path) *numbered {
	return numberedIn(enginetest.New(t, enginetest.Options{Seed: 11, Path: path}), local)
}

func numberedIn(w *enginetest.World, local bool) *numbered {
	host := w.B
	if local {
		host = w.A
	}
	n := &numbered{World: w, a: w.A.NewClient().NewQP(nil), b: host.NewClient().NewQP(nil)}
	n.ma, n.mb = n.a.Client.Register(1<<20, rw), n.b.Client.Register(1<<20, rw)
	for i := range n.ma.Bytes {
		n.ma.Bytes[i] = byte(i * 7)
	}
	return n
}

// attempt holds the attributes of the way to RTS, and their masks.
var attempt = abi.QPAttr{PathMTU: 3, MaxDestRdAtomic: 4, MaxRdAtomic: 4, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 7, IsGlobal: 1, AHPortNum: 1}

const (
	rtrMask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic |
		abi.QPMaskMinRNRTimer
	rtsMask = abi.QPMaskState | abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry
)

func modify(q *enginetest.QP, mask uint32, a abi.QPAttr) {
	h := q.Client.Host
	h.World.T.Helper()
	var err error
	h.Do(func() { err = h.Numbers.Modify(q.Q, 0, mask, &a) })
	if err != nil {
		h.World.T.Fatal(err)
	}
}

func rtr(q, peer *enginetest.QP, a abi.QPAttr) {
	a.QPState, a.DestQPNum, a.DGID = abi.QPSRTR, peer.Q.QPN, peer.Client.Host.Addr.As16()
	modify(q, rtrMask, a)
}

func rts(q *enginetest.QP, a abi.QPAttr) {
	a.QPState = abi.QPSRTS
	modify(q, rtsMask, a)
}

// toInit is the way back from any state.
func toInit(t *testing.T, q *enginetest.QP) {
	t.Helper()
	if err := q.Modify(abi.QPSReset); err != nil {
		t.Fatal(err)
	}
	modify(q, abi.QPMaskState|abi.QPMaskPort|abi.QPMaskPKeyIndex|abi.QPMaskAccessFlags,
		abi.QPAttr{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: qp.RDMAConnectAccess})
}

// exchange has a send, write and read, and checks the bytes.
func (n *numbered) exchange(size int) {
	n.T.(*testing.T).Helper()
	clear(n.mb.Bytes)
	n.b.PostRecv(1, n.mb.SGE(0, size))
	n.a.Post(enginetest.Send(1), n.ma.SGE(0, size))
	n.a.Post(enginetest.Write(2, n.mb, size), n.ma.SGE(size, size))
	n.a.Post(enginetest.Read(3, n.mb, 0), n.ma.SGE(4*size, 2*size))
	for i, e := range completions(n.World, n.a.Send, 3) {
		if e.WRID != uint64(i+1) || e.Status != abi.StatusSuccess {
			n.T.Fatalf("send %d: %+v", i, e)
		}
	}
	if e := completions(n.World, n.b.Recv, 1)[0]; e.Status != abi.StatusSuccess || int(e.ByteLen) != size {
		n.T.Fatalf("receive: %+v", e)
	}
	if !bytes.Equal(n.mb.Bytes[:2*size], n.ma.Bytes[:2*size]) || !bytes.Equal(n.ma.Bytes[4*size:6*size], n.ma.Bytes[:2*size]) {
		n.T.Fatal("bytes differ")
	}
}

// TestByNumber: queue pairs connect whichever side is first, move data, are
// reset by either side alone or by both, and connect again; also where packets
// are lost and doubled.
func TestByNumber(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for name, path := range map[string]linked.Path{"whole": {}, "lossy": {Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Delay: 20 * time.Microsecond}} {
			t.Run(name, func(t *testing.T) {
				n := newNumbered(t, local, path)
				for round := range 8 {
					first, second := n.a, n.b
					if round%2 == 1 {
						first, second = second, first
					}
					rtr(first, second, attempt)
					rts(first, attempt)
					n.Pass(time.Duration(round%3) * 300 * time.Millisecond)
					rtr(second, first, attempt)
					rts(second, attempt)
					n.exchange(5000)
					toInit(t, first)
					toInit(t, second)
				}
			})
		}
	})
}

// TestReceiverStaysInRTR: a queue pair in RTR receives, and is read from.
func TestReceiverStaysInRTR(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		n := newNumbered(t, local, linked.Path{})
		n.b.PostRecv(9, n.mb.SGE(0, 100)) // in INIT
		rtr(n.b, n.a, attempt)
		rtr(n.a, n.b, attempt)
		rts(n.a, attempt)
		n.a.Post(enginetest.Send(1), n.ma.SGE(0, 100))
		if e := completions(n.World, n.b.Recv, 1)[0]; e.WRID != 9 || e.Status != abi.StatusSuccess {
			t.Errorf("%+v", e)
		}
		completions(n.World, n.a.Send, 1)
		n.exchange(3000)
		if n.b.Q.State() != abi.QPSRTR {
			t.Errorf("state %d", n.b.Q.State())
		}
	})
}

// TestPeerNeverComes: work fails with "retry exceeded" when the queue pair's
// patience is over, the rest is flushed, and nothing fails without work.
func TestPeerNeverComes(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		n := newNumbered(t, local, linked.Path{})
		rtr(n.a, n.b, attempt)
		rts(n.a, attempt)
		n.Pass(20 * time.Second)
		if n.a.Q.State() != abi.QPSRTS {
			t.Fatalf("state %d without work", n.a.Q.State())
		}
		start := n.Now()
		n.a.Post(enginetest.Send(1), n.ma.SGE(0, 10))
		n.a.Post(enginetest.Send(2), n.ma.SGE(0, 10))
		e := completions(n.World, n.a.Send, 2)
		if e[0].Status != abi.StatusRetryExcErr || e[1].Status != abi.StatusWRFlushErr || n.a.Q.State() != abi.QPSErr {
			t.Errorf("%+v, state %d", e, n.a.Q.State())
		}
		if took := time.Duration(n.Now() - start); took < 2*time.Second || took > 2300*time.Millisecond {
			t.Errorf("failed after %v, timeout 14 and retry_cnt 7 say 2.15 s", took)
		}
	})
}

// TestPeerLeaves: a peer that is reset leaves the queue pair and its receives as
// they are; work posted then fails, or goes to the peer when it comes again.
func TestPeerLeaves(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for _, back := range []bool{false, true} {
			n := newNumbered(t, local, linked.Path{})
			for _, q := range [][2]*enginetest.QP{{n.a, n.b}, {n.b, n.a}} {
				rtr(q[0], q[1], attempt)
				rts(q[0], attempt)
			}
			n.exchange(100)
			n.a.PostRecv(5, n.ma.SGE(0, 10))
			toInit(t, n.b)
			n.Pass(time.Second)
			if n.a.Q.State() != abi.QPSRTS || len(n.a.Recv.Poll()) != 0 {
				t.Fatalf("state %d after the peer's reset", n.a.Q.State())
			}
			if back {
				rtr(n.b, n.a, attempt)
				rts(n.b, attempt)
				n.exchange(2000)
				continue
			}
			n.a.Post(enginetest.Send(1), n.ma.SGE(0, 10))
			if e := completions(n.World, n.a.Send, 1)[0]; e.Status != abi.StatusRetryExcErr {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestPeerLeavesAmidst: a send that is under way when the peer is reset, or goes
// away, is tried as long as the queue pair's attributes say, as if the peer were
// silent. Neither a receive that the peer posts then nor its next connection
// carries it on.
func TestPeerLeavesAmidst(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for _, gone := range []bool{false, true} {
			n := newNumbered(t, local, linked.Path{})
			for _, q := range [][2]*enginetest.QP{{n.a, n.b}, {n.b, n.a}} {
				rtr(q[0], q[1], attempt)
				rts(q[0], attempt)
			}
			n.exchange(100)
			n.a.Post(enginetest.Send(1), n.ma.SGE(0, 10)) // no receive is posted
			n.a.Post(enginetest.Write(2, n.mb, 5000), n.ma.SGE(0, 10))
			n.Pass(50 * time.Millisecond)
			start := n.Now()
			if gone {
				n.b.Destroy()
			} else {
				toInit(t, n.b)
				n.b.PostRecv(7, n.mb.SGE(0, 10))
				rtr(n.b, n.a, attempt)
				rts(n.b, attempt)
			}
			n.Pass(time.Second)
			if got := n.a.Send.Poll(); len(got) != 0 || n.a.Q.State() != abi.QPSRTS {
				t.Fatalf("a second after the peer left: %+v, state %d", got, n.a.Q.State())
			}
			e := completions(n.World, n.a.Send, 2)
			if e[0].Status != abi.StatusRetryExcErr || e[1].Status != abi.StatusWRFlushErr || n.a.Q.State() != abi.QPSErr {
				t.Errorf("%+v, state %d", e, n.a.Q.State())
			}
			if took := time.Duration(n.Now() - start); took < 2*time.Second || took > 2300*time.Millisecond {
				t.Errorf("failed after %v, timeout 14 and retry_cnt 7 say 2.15 s", took)
			}
			if !gone && len(n.b.Recv.Poll()) != 0 {
				t.Error("the peer's next life received what was sent to the one before")
			}
		}
	})
}

// TestTornMessage: the receive that a peer's message had begun to fill when the
// peer was reset serves the next message.
func TestTornMessage(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		n := newNumbered(t, local, linked.Path{Delay: time.Millisecond})
		for _, q := range [][2]*enginetest.QP{{n.a, n.b}, {n.b, n.a}} {
			rtr(q[0], q[1], attempt)
			rts(q[0], attempt)
		}
		n.exchange(100)
		const size = 1 << 20
		n.b.PostRecv(1, n.mb.SGE(0, size))
		n.a.Post(enginetest.Send(1), n.ma.SGE(0, size))
		n.Until("the message begins", time.Second, func() bool {
			begun, _ := n.b.Q.Recv.Active()
			return begun
		})
		toInit(t, n.a)
		n.Pass(time.Second)
		if got := n.b.Recv.Poll(); len(got) != 0 || n.b.Q.State() != abi.QPSRTS {
			t.Fatalf("%+v, state %d after the peer's reset", got, n.b.Q.State())
		}
		rtr(n.a, n.b, attempt)
		rts(n.a, attempt)
		n.a.Post(enginetest.Send(2), n.ma.SGE(7, 300))
		if e := completions(n.World, n.b.Recv, 1)[0]; e.WRID != 1 || e.Status != abi.StatusSuccess || e.ByteLen != 300 {
			t.Errorf("%+v", e)
		}
		if !bytes.Equal(n.mb.Bytes[:300], n.ma.Bytes[7:307]) {
			t.Error("bytes differ")
		}
	})
}

// TestRNRRetry: a message without a receive fails its sender alone when
// rnr_retry and the receiver's min_rnr_timer say so, and never with 7.
func TestRNRRetry(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for _, retry := range []uint32{0, 3, 7} {
			n := newNumbered(t, local, linked.Path{})
			a := attempt
			a.RNRRetry, a.MinRNRTimer = retry, 29 // 245.76 ms
			for _, q := range [][2]*enginetest.QP{{n.a, n.b}, {n.b, n.a}} {
				rtr(q[0], q[1], a)
				rts(q[0], a)
			}
			n.exchange(100)
			n.a.Post(enginetest.Send(8), n.ma.SGE(0, 10))
			start := n.Now()
			if retry == 7 {
				n.Pass(20 * time.Second)
				n.b.PostRecv(3, n.mb.SGE(0, 10))
				if e := completions(n.World, n.a.Send, 1)[0]; e.Status != abi.StatusSuccess {
					t.Errorf("%+v", e)
				}
				continue
			}
			e, took := completions(n.World, n.a.Send, 1)[0], time.Duration(n.Now()-start)
			want := time.Duration(retry) * 245760 * time.Microsecond
			if e.Status != abi.StatusRNRRetryExcErr || took < want || took > want+20*time.Millisecond {
				t.Errorf("rnr_retry %d: %+v after %v, expected %v", retry, e, took, want)
			}
			n.Pass(time.Second)
			if n.b.Q.State() != abi.QPSRTS || len(n.b.Recv.Poll()) != 0 {
				t.Errorf("the receiver is in state %d", n.b.Q.State())
			}
		}
	})
}

// TestWithItself: a queue pair may be its own peer.
func TestWithItself(t *testing.T) {
	n := newNumbered(t, true, linked.Path{})
	rtr(n.a, n.a, attempt)
	rts(n.a, attempt)
	n.a.PostRecv(1, n.ma.SGE(5000, 50))
	n.a.Post(enginetest.Send(2), n.ma.SGE(0, 50))
	completions(n.World, n.a.Recv, 1)
	completions(n.World, n.a.Send, 1)
	if !bytes.Equal(n.ma.Bytes[:50], n.ma.Bytes[5000:5050]) {
		t.Error("bytes differ")
	}
}
