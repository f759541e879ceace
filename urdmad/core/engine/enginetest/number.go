package enginetest

import (
	"bytes"
	"testing"

	"urdma/test/linked"
	"urdma/verbs/abi"
)

// NumberPair is two queue pairs with memory, connected by ibv_modify_qp.
type NumberPair struct {
	*World
	QA, QB *QP
	MA, MB *Region
}

// NewNumberPair returns two queue pairs in INIT.
func NewNumberPair(t *testing.T, local bool, path linked.Path) *NumberPair {
	return NumberPairIn(New(t, Options{Seed: 11, Path: path}), local)
}

// NumberPairIn is NewNumberPair in a given world.
func NumberPairIn(w *World, local bool) *NumberPair {
	host := w.B
	if local {
		host = w.A
	}
	n := &NumberPair{World: w, QA: w.A.NewClient().NewQP(nil), QB: host.NewClient().NewQP(nil)}
	n.MA, n.MB = n.QA.Client.Register(1<<20, ReadWrite), n.QB.Client.Register(1<<20, ReadWrite)
	for i := range n.MA.Bytes {
		n.MA.Bytes[i] = byte(i * 7)
	}
	return n
}

// NewConnectedPair returns two queue pairs in RTS with an rnr_retry, which have exchanged
// messages.
func NewConnectedPair(t *testing.T, local bool, path linked.Path, retries uint32) *NumberPair {
	n := ConnectedPairIn(New(t, Options{Seed: 11, Path: path}), local, retries)
	n.Exchange(100)
	return n
}

// ConnectedPairIn returns two queue pairs in RTS with an rnr_retry, in a given world.
func ConnectedPairIn(w *World, local bool, retries uint32) *NumberPair {
	n, a := NumberPairIn(w, local), Attempt
	a.RNRRetry = retries
	for _, q := range [][2]*QP{{n.QA, n.QB}, {n.QB, n.QA}} {
		q[0].ReadyToReceive(q[1], a)
		q[0].ReadyToSend(a)
	}
	return n
}

// Exchange makes QA send, write and read, and checks the bytes.
func (n *NumberPair) Exchange(size int) {
	n.T.(*testing.T).Helper()
	clear(n.MB.Bytes)
	n.QB.PostRecv(1, n.MB.SGE(0, size))
	n.QA.Post(Send(1), n.MA.SGE(0, size))
	n.QA.Post(Write(2, n.MB, size), n.MA.SGE(size, size))
	n.QA.Post(Read(3, n.MB, 0), n.MA.SGE(4*size, 2*size))
	for i, e := range n.QA.Send.Completions(3) {
		if e.WRID != uint64(i+1) || e.Status != abi.StatusSuccess {
			n.T.Fatalf("send %d: %+v", i, e)
		}
	}
	if e := n.QB.Recv.Completions(1)[0]; e.Status != abi.StatusSuccess || int(e.ByteLen) != size {
		n.T.Fatalf("receive: %+v", e)
	}
	if !bytes.Equal(n.MB.Bytes[:2*size], n.MA.Bytes[:2*size]) ||
		!bytes.Equal(n.MA.Bytes[4*size:6*size], n.MA.Bytes[:2*size]) {
		n.T.Fatal("bytes differ")
	}
}

// Attempt has the attributes for the moves to RTS. RTRMask and RTSMask select those of each move.
var Attempt = abi.QPAttr{PathMTU: 3, MaxDestRdAtomic: 4, MaxRdAtomic: 4, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7,
	RNRRetry: 7, IsGlobal: 1, AHPortNum: 1}

const (
	RTRMask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic |
		abi.QPMaskMinRNRTimer
	RTSMask = abi.QPMaskState | abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
		abi.QPMaskRNRRetry
)

// ReadyToReceive moves the queue pair to RTR with peer as its destination.
func (q *QP) ReadyToReceive(peer *QP, a abi.QPAttr) {
	q.Client.Host.World.T.Helper()
	a.QPState, a.DestQPNum, a.DGID = abi.QPSRTR, peer.Q.QPN, peer.Client.Host.Addr.As16()
	q.MustModify(RTRMask, a)
}

// ReadyToSend moves the queue pair to RTS.
func (q *QP) ReadyToSend(a abi.QPAttr) {
	q.Client.Host.World.T.Helper()
	a.QPState = abi.QPSRTS
	q.MustModify(RTSMask, a)
}

// ToInit moves the queue pair to INIT from any state.
func (q *QP) ToInit() {
	t := q.Client.Host.World.T
	t.Helper()
	if err := q.Modify(abi.QPSReset); err != nil {
		t.Fatal(err)
	}
	q.MustModify(initMask, initAttr)
}
