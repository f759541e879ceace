package qpconnect_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestByNumber: queue pairs connect in any order, move data, are reset by either side or by both, and connect again;
// also if packets are lost and duplicated.
func TestByNumber(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for name, path := range map[string]linked.Path{"whole": {},
			"lossy": {Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Delay: 20 * time.Microsecond}} {
			t.Run(name, func(t *testing.T) {
				n := enginetest.NewNumberPair(t, local, path)
				for round := range 8 {
					first, second := n.QA, n.QB
					if round%2 == 1 {
						first, second = second, first
					}
					first.ReadyToReceive(second, enginetest.Attempt)
					first.ReadyToSend(enginetest.Attempt)
					n.Pass(time.Duration(round%3) * 300 * time.Millisecond)
					second.ReadyToReceive(first, enginetest.Attempt)
					second.ReadyToSend(enginetest.Attempt)
					n.Exchange(5000)
					first.ToInit()
					second.ToInit()
				}
			})
		}
	})
}

// TestReceiverStaysInRTR: a queue pair in RTR receives, and is read from.
func TestReceiverStaysInRTR(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewNumberPair(t, local, linked.Path{})
		n.QB.PostRecv(9, n.MB.SGE(0, 100)) // in INIT
		n.QB.ReadyToReceive(n.QA, enginetest.Attempt)
		n.QA.ReadyToReceive(n.QB, enginetest.Attempt)
		n.QA.ReadyToSend(enginetest.Attempt)
		n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 100))
		if e := n.QB.Recv.Completions(1)[0]; e.WRID != 9 || e.Status != abi.StatusSuccess {
			t.Errorf("%+v", e)
		}
		n.QA.Send.Completions(1)
		n.Exchange(3000)
		if n.QB.Q.State() != abi.QPSRTR {
			t.Errorf("state %d", n.QB.Q.State())
		}
	})
}

// TestPeerNeverComes: work fails with "retry exceeded" when the queue pair's time-out is over, the rest is flushed,
// and without work nothing fails.
func TestPeerNeverComes(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewNumberPair(t, local, linked.Path{})
		n.QA.ReadyToReceive(n.QB, enginetest.Attempt)
		n.QA.ReadyToSend(enginetest.Attempt)
		n.Pass(20 * time.Second)
		if n.QA.Q.State() != abi.QPSRTS {
			t.Fatalf("state %d without work", n.QA.Q.State())
		}
		start := n.Now()
		n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 10))
		n.QA.Post(enginetest.Send(2), n.MA.SGE(0, 10))
		e := n.QA.Send.Completions(2)
		if e[0].Status != abi.StatusRetryExcErr || e[1].Status != abi.StatusWRFlushErr || n.QA.Q.State() != abi.QPSErr {
			t.Errorf("%+v, state %d", e, n.QA.Q.State())
		}
		if took := time.Duration(n.Now() - start); took < 2*time.Second || took > 2300*time.Millisecond {
			t.Errorf("failed after %v, timeout 14 and retry_cnt 7 say 2.15 s", took)
		}
	})
}

// TestPeerLeaves: if a peer is reset, the queue pair and its receives stay unchanged. Work posted then fails, or goes
// to the peer when it connects again.
func TestPeerLeaves(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, back := range []bool{false, true} {
			n := enginetest.NewNumberPair(t, local, linked.Path{})
			for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
				q[0].ReadyToReceive(q[1], enginetest.Attempt)
				q[0].ReadyToSend(enginetest.Attempt)
			}
			n.Exchange(100)
			n.QA.PostRecv(5, n.MA.SGE(0, 10))
			n.QB.ToInit()
			n.Pass(time.Second)
			if n.QA.Q.State() != abi.QPSRTS || len(n.QA.Recv.Poll()) != 0 {
				t.Fatalf("state %d after the peer's reset", n.QA.Q.State())
			}
			if back {
				n.QB.ReadyToReceive(n.QA, enginetest.Attempt)
				n.QB.ReadyToSend(enginetest.Attempt)
				n.Exchange(2000)
				continue
			}
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 10))
			if e := n.QA.Send.Completions(1)[0]; e.Status != abi.StatusRetryExcErr {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestPeerLeavesAmidst: a send that is outstanding when the peer is reset, or leaves, is tried as long as the queue
// pair's attributes say, as if the peer were silent. Neither a receive that the peer posts then nor its next
// connection continues it.
func TestPeerLeavesAmidst(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, gone := range []bool{false, true} {
			n := enginetest.NewNumberPair(t, local, linked.Path{})
			for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
				q[0].ReadyToReceive(q[1], enginetest.Attempt)
				q[0].ReadyToSend(enginetest.Attempt)
			}
			n.Exchange(100)
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 10)) // no receive is posted
			n.QA.Post(enginetest.Write(2, n.MB, 5000), n.MA.SGE(0, 10))
			n.Pass(50 * time.Millisecond)
			start := n.Now()
			if gone {
				n.QB.Destroy()
			} else {
				n.QB.ToInit()
				n.QB.PostRecv(7, n.MB.SGE(0, 10))
				n.QB.ReadyToReceive(n.QA, enginetest.Attempt)
				n.QB.ReadyToSend(enginetest.Attempt)
			}
			n.Pass(time.Second)
			if got := n.QA.Send.Poll(); len(got) != 0 || n.QA.Q.State() != abi.QPSRTS {
				t.Fatalf("a second after the peer left: %+v, state %d", got, n.QA.Q.State())
			}
			e := n.QA.Send.Completions(2)
			if e[0].Status != abi.StatusRetryExcErr || e[1].Status != abi.StatusWRFlushErr || n.QA.Q.State() != abi.QPSErr {
				t.Errorf("%+v, state %d", e, n.QA.Q.State())
			}
			if took := time.Duration(n.Now() - start); took < 2*time.Second || took > 2300*time.Millisecond {
				t.Errorf("failed after %v, timeout 14 and retry_cnt 7 say 2.15 s", took)
			}
			if !gone && len(n.QB.Recv.Poll()) != 0 {
				t.Error("the peer's next life received what was sent to the one before")
			}
		}
	})
}

// TestTornMessage: a receive that a peer's message had begun to fill when the peer was reset serves the next message.
func TestTornMessage(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewNumberPair(t, local, linked.Path{Delay: time.Millisecond})
		for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
			q[0].ReadyToReceive(q[1], enginetest.Attempt)
			q[0].ReadyToSend(enginetest.Attempt)
		}
		n.Exchange(100)
		const size = 1 << 20
		n.QB.PostRecv(1, n.MB.SGE(0, size))
		n.QA.Post(enginetest.Send(1), n.MA.SGE(0, size))
		n.Until("the message begins", time.Second, func() bool {
			begun, _ := n.QB.Q.Recv.Active()
			return begun
		})
		n.QA.ToInit()
		n.Pass(time.Second)
		if got := n.QB.Recv.Poll(); len(got) != 0 || n.QB.Q.State() != abi.QPSRTS {
			t.Fatalf("%+v, state %d after the peer's reset", got, n.QB.Q.State())
		}
		n.QA.ReadyToReceive(n.QB, enginetest.Attempt)
		n.QA.ReadyToSend(enginetest.Attempt)
		n.QA.Post(enginetest.Send(2), n.MA.SGE(7, 300))
		if e := n.QB.Recv.Completions(1)[0]; e.WRID != 1 || e.Status != abi.StatusSuccess || e.ByteLen != 300 {
			t.Errorf("%+v", e)
		}
		if !bytes.Equal(n.MB.Bytes[:300], n.MA.Bytes[7:307]) {
			t.Error("bytes differ")
		}
	})
}
