package rawpacket_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// end is a queue pair of type RAW_PACKET with memory for 64 receives, of which room bytes each are used.
type end struct {
	*enginetest.QP
	memory *enginetest.Region
	room   int
}

const roomEach = 2048

func newEnd(h *enginetest.Host) *end {
	q := h.NewClient().NewRaw()
	return &end{q, q.Client.Register(65*roomEach, enginetest.ReadWrite), roomEach}
}

// receives posts n receives with the numbers from 0.
func (e *end) receives(n int) *end {
	for i := range n {
		e.PostRecv(uint64(i), e.memory.SGE(i*roomEach, e.room))
	}
	return e
}

// sends sends a frame, and returns its completion.
func (e *end) sends(frame []byte) abi.CQE {
	at := 64 * roomEach
	copy(e.memory.Bytes[at:], frame)
	e.Post(enginetest.Send(7), e.memory.SGE(at, len(frame)))
	return e.Send.Completions(1)[0]
}

// got returns the frames that have arrived after a while.
func (e *end) got() (frames []string) {
	e.Client.Host.World.Pass(time.Millisecond)
	for _, w := range e.Recv.Poll() {
		if w.Status == abi.StatusSuccess {
			at := int(w.WRID) * roomEach
			frames = append(frames, string(e.memory.Bytes[at:at+int(w.ByteLen)]))
		}
	}
	return frames
}

// frame returns a frame of an experimental protocol between the hosts.
func frame(from, to *enginetest.Host, text string) []byte {
	dst, src := to.Engine.Interface(0).MAC(), from.Engine.Interface(0).MAC()
	return slices.Concat(dst[:], src[:], []byte{0x88, 0xb5}, []byte(text))
}

// toMAC is a flow for a destination.
func toMAC(mac []byte) (m abi.CreateFlowRequest) {
	copy(m.Value[:], mac)
	copy(m.Mask[:6], bytes.Repeat([]byte{0xff}, 6))
	return m
}

func TestFrames(t *testing.T) {
	for _, access := range []uint32{abi.RawNonIP, abi.RawAll} {
		w := enginetest.New(t, enginetest.Options{Seed: 1})
		w.OpenRaw(access)
		a, b := newEnd(w.A), newEnd(w.B).receives(8)
		mac := w.B.Engine.Interface(0).MAC()
		destroy := b.Flow(toMAC(mac[:]))
		var want []string
		for _, n := range []int{0, 46, 1500} {
			f := frame(w.A, w.B, string(bytes.Repeat([]byte{'x'}, n)))
			if e := a.sends(f); e.Status != abi.StatusSuccess || e.WRID != 7 {
				t.Fatalf("send: %+v", e)
			}
			want = append(want, string(f))
		}
		a.sends(slices.Concat([]byte{2, 9, 9, 9, 9, 9}, frame(w.A, w.B, "for another")[6:]))
		if got := b.got(); !slices.Equal(got, want) {
			t.Errorf("%d frames %q, want %d", len(got), got, len(want))
		}
		destroy()
		a.sends([]byte(want[1]))
		if got := b.got(); len(got) > 0 {
			t.Errorf("without a flow %q arrived", got)
		}
		if s := w.B.Engine.Raw.Counts(); s.Received != 3 || s.NoReceive != 0 {
			t.Errorf("counts %+v", s)
		}
	}
}

// TestRefusedFrame: the send fails with the reason, and sends work again after a move to RTS.
func TestRefusedFrame(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 2})
	w.OpenRaw(abi.RawNonIP)
	a, b := newEnd(w.A), newEnd(w.B).receives(8)
	mac := w.B.Engine.Interface(0).MAC()
	b.Flow(toMAC(mac[:]))
	good := frame(w.A, w.B, "good")
	forged, ip := slices.Clone(good), slices.Clone(good)
	forged[11]++
	ip[12], ip[13] = 8, 0
	for _, bad := range [][]byte{forged, ip, good[:13], slices.Concat(good, make([]byte, 1500))} {
		want := reason.Frame
		status := uint32(abi.StatusLocQPOpErr)
		if len(bad) > 1514 {
			want, status = reason.DatagramSize, abi.StatusLocLenErr
		}
		if e := a.sends(bad); e.Status != status || e.VendorErr != uint32(want) {
			t.Errorf("a frame of %d bytes: %+v", len(bad), e)
		}
		if s := a.Q.State(); s != abi.QPSSQE {
			t.Fatalf("state %s", abi.QPStateText(s))
		}
		if err := a.ModifyNumber(abi.QPMaskState, abi.QPAttr{QPState: abi.QPSRTS}); err != nil {
			t.Fatal(err)
		}
		if e := a.sends(good); e.Status != abi.StatusSuccess {
			t.Fatalf("afterwards: %+v", e)
		}
	}
	if got := b.got(); len(got) != 4 || got[0] != string(good) {
		t.Errorf("%q arrived", got)
	}
}

// TestOrder: of flows that match, those with the lowest priority number get a frame; others if they let it pass.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		flows []abi.CreateFlowRequest
		want  []int // frames that arrive: the unicast, the group's
	}{
		{"equal ones", []abi.CreateFlowRequest{{}, {}}, []int{2, 2}},
		{"priorities", []abi.CreateFlowRequest{{Priority: 2}, {Priority: 1}, {Priority: 1}}, []int{0, 2, 2}},
		{"one that lets pass", []abi.CreateFlowRequest{{Priority: 2}, {Priority: 1, Flags: abi.FlowFlagsDontTrap}}, []int{2, 2}},
		{"one that traps beside it", []abi.CreateFlowRequest{{Priority: 2}, {Priority: 1, Flags: abi.FlowFlagsDontTrap},
			{Priority: 1}}, []int{0, 2, 2}},
		{"defaults", []abi.CreateFlowRequest{{Type: abi.FlowAllDefault}, {Type: abi.FlowMCDefault}}, []int{2, 1}},
		{"defaults beside a rule", []abi.CreateFlowRequest{{Type: abi.FlowAllDefault}, {Priority: 65535}}, []int{0, 2}},
		{"a sniffer", []abi.CreateFlowRequest{{Type: abi.FlowSniffer}, {}, {Type: abi.FlowAllDefault}}, []int{2, 2, 0}},
	} {
		w := enginetest.New(t, enginetest.Options{Seed: 3, NoCapture: true})
		w.OpenRaw(abi.RawAll)
		w.Pass(10 * time.Millisecond) // the hosts' own announcements
		a := newEnd(w.A)
		var ends []*end
		for _, m := range c.flows {
			e := newEnd(w.B).receives(8)
			e.Flow(m)
			ends = append(ends, e)
		}
		one := frame(w.A, w.B, c.name)
		all := slices.Clone(one)
		copy(all, []byte{1, 0, 0x5e, 0, 0, 9})
		a.sends(one)
		a.sends(all)
		var got []int
		for _, e := range ends {
			got = append(got, len(e.got()))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v frames, want %v", c.name, got, c.want)
		}
	}
}

// TestNothingTaken: connections work beside flows that match all frames, and a sniffer sees both directions.
func TestNothingTaken(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4})
	w.OpenRaw(abi.RawAll)
	sniffer, greedy := newEnd(w.A).receives(60), newEnd(w.B).receives(60)
	sniffer.Flow(abi.CreateFlowRequest{Type: abi.FlowSniffer})
	greedy.Flow(abi.CreateFlowRequest{})
	n := enginetest.ConnectedPairIn(w, false, 7)
	n.Exchange(3000)
	out, in, mac := 0, 0, w.A.Engine.Interface(0).MAC()
	for _, f := range sniffer.got() {
		if f[6:12] == string(mac[:]) {
			out++
		} else {
			in++
		}
	}
	if out == 0 || in == 0 || len(greedy.got()) == 0 {
		t.Errorf("the sniffer saw %d frames out and %d in", out, in)
	}
}

// TestWorkers: a frame reaches the queue pairs of both workers once, and is not sent to the network's receivers.
func TestWorkers(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 5, Workers: true})
	w.OpenRaw(abi.RawNonIP)
	a, near, far := newEnd(w.A), newEnd(w.A).receives(4), newEnd(w.B).receives(4)
	near.Flow(abi.CreateFlowRequest{})
	far.Flow(abi.CreateFlowRequest{})
	f := frame(w.A, w.A, "to ourselves")
	a.sends(f)
	copy(f, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	a.sends(f)
	for _, e := range []*end{near, far} {
		if got := e.got(); len(got) != 2 || got[1] != string(f) {
			t.Errorf("%q arrived", got)
		}
	}
}

// TestLost: frames without a receive, with a short one, or beyond what may wait are dropped and counted.
func TestLost(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 6})
	w.OpenRaw(abi.RawNonIP)
	a, b := newEnd(w.A), newEnd(w.B)
	b.Flow(abi.CreateFlowRequest{})
	a.sends(frame(w.A, w.B, "nobody"))
	b.room = 20
	b.receives(1)
	a.sends(frame(w.A, w.B, "too long for it"))
	a.sends(frame(w.A, w.B, "fits"))
	if got := b.got(); len(got) != 1 || got[0] != string(frame(w.A, w.B, "fits")) {
		t.Errorf("%q arrived", got)
	}
	if s := w.B.Engine.Raw.Counts(); s.NoReceive != 1 || s.NoRoom != 1 || s.Received != 1 {
		t.Errorf("counts %+v", s)
	}
}

// TestEnds: a flow whose queue pair has left, or whose client's memory is gone, harms nobody.
func TestEnds(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 7})
	w.OpenRaw(abi.RawNonIP)
	a, gone, revoked, well := newEnd(w.A), newEnd(w.B).receives(4), newEnd(w.B).receives(4), newEnd(w.B).receives(4)
	for _, e := range []*end{gone, revoked, well} {
		e.Flow(abi.CreateFlowRequest{})
	}
	gone.Destroy()
	revoked.memory.Deregister()
	a.sends(frame(w.A, w.B, "hello"))
	if got := well.got(); len(got) != 1 {
		t.Errorf("%q arrived", got)
	}
	if got := revoked.Recv.Poll(); len(got) == 0 || got[0].Status != abi.StatusLocProtErr || revoked.Q.State() != abi.QPSErr {
		t.Errorf("with memory deregistered: %+v", got)
	}
}

// TestTurn: many flows for many frames keep a worker's turn short; what does not fit follows or is dropped.
func TestTurn(t *testing.T) {
	const flows, frames, most = 1000, 64, 20000
	w := enginetest.New(t, enginetest.Options{Seed: 9, NoCapture: true})
	w.OpenRaw(abi.RawNonIP)
	a, b := newEnd(w.A), newEnd(w.B)
	for range flows {
		b.Flow(abi.CreateFlowRequest{})
	}
	at := 64 * roomEach
	f := frame(w.A, w.B, "x")
	copy(a.memory.Bytes[at:], f)
	for range frames {
		a.Post(enginetest.Send(7), a.memory.SGE(at, len(f)))
	}
	for range 20 { // the other host looks elsewhere
		w.A.Engine.Turn(w.Now())
		w.Net.Advance(int64(w.Now()) + 500)
	}
	now := func() uint64 { return w.B.Engine.Raw.Counts().NoReceive }
	for last := uint64(0); ; last = now() {
		w.B.Engine.Turn(w.Now())
		if n := now() - last; n > most {
			t.Fatalf("a turn has looked for %d receives", n)
		} else if n == 0 {
			break
		}
	}
	if s := w.B.Engine.Raw.Counts(); s.NoReceive < most/2 || s.NoReceive+s.Overrun != flows*frames {
		t.Errorf("counts %+v", s)
	}
}

// TestNoAllocation: frames that pass, with flows and without, cost no memory.
func TestNoAllocation(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 8, NoCapture: true, Pipe: true})
	w.OpenRaw(abi.RawAll)
	a, b := newEnd(w.A), newEnd(w.B)
	for i := range 8 {
		b.Flow(abi.CreateFlowRequest{Priority: uint32(i)})
	}
	f := frame(w.A, w.B, "x")
	at := 64 * roomEach
	copy(a.memory.Bytes[at:], f)
	var done [8]abi.CQE
	round := func() {
		b.PostRecv(0, b.memory.SGE(0, roomEach))
		a.Post(enginetest.Send(7), a.memory.SGE(at, len(f)))
		for a.Send.PollInto(done[:]) == 0 {
			w.Turn()
		}
		for b.Recv.PollInto(done[:]) == 0 {
			w.Turn()
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n >= 1 {
		t.Errorf("%v allocations a frame", n)
	}
}
