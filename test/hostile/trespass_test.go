package hostile

import (
	"context"
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"testing"

	"urdma/test/lab"
	"urdma/verbs"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// trespasser is a hostile client with one queue pair, and its well-behaved peer on the same urdmad or another.
type trespasser struct {
	t        *testing.T
	ctx      context.Context
	from, to *side
}

// side is a queue pair with memory of its protection domain.
type side struct {
	x    *verbs.Context
	cq   *verbs.CQ
	srq  *verbs.SRQ
	qp   *verbs.QP
	mr   *verbs.MR
	ring int64 // address of the memory that the queue pair, or its shared receive queue, shares with urdmad
}

const (
	sideBytes = 64 << 10
	sideWR    = 16
	mark      = 0x5e // all memory is filled with it
	anything  = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.BindWindows
)

// TestTrespass: each forbidden act gets the required answer and moves no byte. Checking only that others continue
// would not show that, because most acts harm only the trespasser.
func TestTrespass(t *testing.T) {
	build := buildDirectory(t)
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(w.Name, func(t *testing.T) {
			_, a, b := hosts(t, build, w)
			for name, deed := range trespasses {
				t.Run(name, func(t *testing.T) {
					x := newTrespasser(t, a, b, name == "shared receive index")
					deed(x)
					x.unchanged(x.to.mr)
				})
			}
		})
	}
}

var trespasses = map[string]func(*trespasser){
	"Write to another domain": func(x *trespasser) { x.otherDomain(verbs.OpWrite, 100) },
	"Read of another domain":  func(x *trespasser) { x.otherDomain(verbs.OpRead, 100) },
	"atomic in another domain": func(x *trespasser) {
		x.otherDomain(verbs.OpFetchAdd, 8)
	},
	"behind a region": func(x *trespasser) {
		x.refused(&verbs.SendWR{Op: verbs.OpWrite, SGE: x.some(100), Remote: x.to.mr.Remote(sideBytes - 99)},
			verbs.StatusRemAccessErr)
	},
	"in front of a region": func(x *trespasser) {
		at := x.to.mr.Remote(0)
		at.Addr--
		x.refused(&verbs.SendWR{Op: verbs.OpRead, SGE: x.some(100), Remote: at}, verbs.StatusRemAccessErr)
	},
	"behind a window":      func(x *trespasser) { x.window(1000, 100, 1001) },
	"in front of a window": func(x *trespasser) { x.window(1000, 100, 999) },
	"more than its own region": func(x *trespasser) {
		x.refused(&verbs.SendWR{Op: verbs.OpWrite,
			SGE:    []verbs.SGE{{Addr: x.from.mr.Addr() + 1, Length: sideBytes, LKey: x.from.mr.LKey()}},
			Remote: x.to.mr.Remote(0)}, verbs.StatusLocProtErr)
	},
	"another's key as its own": func(x *trespasser) {
		x.refused(&verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{x.to.mr.SGE(0, 100)}, Remote: x.to.mr.Remote(200)},
			verbs.StatusLocProtErr)
	},
	"send index":           func(x *trespasser) { x.sendIndex() },
	"receive index":        func(x *trespasser) { x.receiveIndex() },
	"shared receive index": func(x *trespasser) { x.receiveIndex() },
}

func newTrespasser(t *testing.T, a, b *lab.Node, shared bool) *trespasser {
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	t.Cleanup(cancel)
	x := &trespasser{t: t, ctx: ctx}
	x.from, x.to = x.side(a, false), x.side(b, shared)
	x.connect(x.from.qp, x.to.qp)
	x.connect(x.to.qp, x.from.qp)
	return x
}

// must ends the test if something that is allowed fails.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (x *trespasser) side(n *lab.Node, shared bool) *side {
	t := x.t
	t.Helper()
	client := must[*verbs.Client](t)(verbs.Open(n.Socket()))
	t.Cleanup(func() { client.Close() })
	s := &side{x: must[*verbs.Context](t)(client.Devices()[0].Open())}
	pd := must[*verbs.PD](t)(s.x.AllocPD())
	channel := must[*verbs.CompChannel](t)(s.x.CreateCompChannel())
	s.cq = must[*verbs.CQ](t)(s.x.CreateCQ(64, channel))
	s.mr = full(t, pd)
	before := rings()
	if shared {
		s.srq = must[*verbs.SRQ](t)(pd.CreateSRQ(verbs.SRQOptions{RecvWR: sideWR, RecvSGE: 1}))
		s.ring = added(t, before)
	}
	s.qp = must[*verbs.QP](t)(pd.CreateQP(s.cq, s.cq, verbs.QPOptions{SendWR: sideWR, RecvWR: sideWR, SRQ: s.srq}))
	if !shared {
		s.ring = added(t, before)
	}
	return s
}

func full(t *testing.T, pd *verbs.PD) *verbs.MR {
	t.Helper()
	m := must[*verbs.MR](t)(pd.AllocMemory(sideBytes, anything))
	for i := range m.Bytes() {
		m.Bytes()[i] = mark
	}
	return m
}

var ringMapping = regexp.MustCompile(`(?m)^([0-9a-f]+)-[0-9a-f]+ rw-s .*/memfd:urdma-s?r?qp? `)

// rings returns the addresses of work queues that the process shares with urdmad.
func rings() map[int64]bool {
	out := map[int64]bool{}
	text, _ := os.ReadFile("/proc/self/maps")
	for _, m := range ringMapping.FindAllSubmatch(text, -1) {
		at, _ := strconv.ParseInt(string(m[1]), 16, 64)
		out[at] = true
	}
	return out
}

// added returns the ring that is new.
func added(t *testing.T, before map[int64]bool) int64 {
	t.Helper()
	for at := range rings() {
		if !before[at] {
			return at
		}
	}
	t.Fatal("no memory of the queue is found")
	return 0
}

// connect moves a queue pair to RTS; a message without a receive fails at once.
func (x *trespasser) connect(q, peer *verbs.QP) {
	x.t.Helper()
	n := peer.Number()
	for _, step := range []struct {
		attr verbs.QPAttr
		mask uint32
	}{
		{verbs.QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: n.QPN, IsGlobal: 1, DGID: n.Addr.As16(), AHPortNum: 1,
			HopLimit:        64,
			MaxDestRdAtomic: 4, MinRNRTimer: 1}, abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN |
			abi.QPMaskRQPSN |
			abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer},
		{verbs.QPAttr{QPState: abi.QPSRTS, Timeout: 18, RetryCnt: 7, MaxRdAtomic: 4},
			abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
				abi.QPMaskRNRRetry | abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic},
	} {
		if err := q.Modify(&step.attr, step.mask); err != nil {
			x.t.Fatal(err)
		}
	}
}

// some returns n bytes of the trespasser's own memory.
func (x *trespasser) some(n int) []verbs.SGE { return []verbs.SGE{x.from.mr.SGE(0, n)} }

// done posts a send and waits for its completion.
func (x *trespasser) done(s *side, wr *verbs.SendWR) verbs.Status {
	x.t.Helper()
	wr.Flags |= verbs.Signaled
	if err := s.qp.PostSend(wr); err != nil {
		x.t.Fatal(err)
	}
	var got [1]verbs.Completion
	if _, err := s.cq.Wait(x.ctx, got[:]); err != nil {
		x.t.Fatal(err)
	}
	return got[0].Status
}

func (x *trespasser) refused(wr *verbs.SendWR, want verbs.Status) {
	x.t.Helper()
	if got := x.done(x.from, wr); got != want {
		x.t.Errorf("%v, expected %v", got, want)
	}
	x.unchanged(x.from.mr)
}

func (x *trespasser) unchanged(m *verbs.MR) {
	x.t.Helper()
	for i, b := range m.Bytes() {
		if b != mark {
			x.t.Fatalf("byte %d was changed", i)
		}
	}
}

// otherDomain uses memory that the peer's program offers to others: with its right key, but in another protection
// domain than the connection's.
func (x *trespasser) otherDomain(op verbs.Opcode, n int) {
	x.t.Helper()
	other := full(x.t, must[*verbs.PD](x.t)(x.to.x.AllocPD()))
	x.refused(&verbs.SendWR{Op: op, SGE: x.some(n), Remote: other.Remote(0), Add: 1}, verbs.StatusRemAccessErr)
	x.unchanged(other)
}

// window writes n bytes at an offset of the peer's region, through a window of n bytes elsewhere.
func (x *trespasser) window(bound, n, offset int) {
	x.t.Helper()
	w := must[*verbs.Window](x.t)(x.to.qp.PD().AllocWindow(verbs.Window2))
	if got := x.done(x.to, &verbs.SendWR{Op: verbs.OpBindWindow,
		Bind: verbs.Bind{Window: w, MR: x.to.mr, Offset: bound, Length: n,
			Access: verbs.RemoteWrite}}); got != verbs.StatusSuccess {
		x.t.Fatal(got)
	}
	x.refused(&verbs.SendWR{Op: verbs.OpWrite, SGE: x.some(n), Remote: w.Remote(x.to.mr, offset)},
		verbs.StatusRemAccessErr)
}

// scribble32 changes a word that the process shares with urdmad.
func (x *trespasser) scribble32(at int64, v uint32) {
	x.t.Helper()
	self := must[*os.File](x.t)(os.OpenFile("/proc/self/mem", os.O_RDWR, 0))
	defer self.Close()
	if _, err := self.WriteAt(binary.NativeEndian.AppendUint32(nil, v), at); err != nil {
		x.t.Fatal(err)
	}
}

// sendIndex claims that far more sends were posted than the queue holds: the queue pair must fail before urdmad reads
// any of them.
func (x *trespasser) sendIndex() {
	x.t.Helper()
	x.scribble32(x.from.ring, 1<<20)
	if err := x.from.qp.PostRecv(&verbs.RecvWR{}); err != nil { // this rings the same doorbell
		x.t.Fatal(err)
	}
	select {
	case ev := <-x.from.x.Events():
		if a, err := x.from.qp.Query(); err != nil || a.QPState != abi.QPSErr {
			x.t.Errorf("state %d after event %+v: %v", a.QPState, ev, err)
		}
	case <-x.ctx.Done():
		x.t.Error("a queue with an impossible index goes on")
	}
}

// receiveIndex does the same with receives, of which there is none.
func (x *trespasser) receiveIndex() {
	x.t.Helper()
	head := uint32(0)
	if x.to.srq == nil { // it follows the send queue
		head = ring.QPLayout(abi.QPCap{MaxSendWR: sideWR, MaxRecvWR: sideWR,
			MaxInline: uint32(x.to.qp.MaxInline())}).RQ.HeadOffset
	}
	x.scribble32(x.to.ring+int64(head), 1<<20)
	x.refused(&verbs.SendWR{Op: verbs.OpSend}, verbs.StatusRNRRetryExcErr)
}
