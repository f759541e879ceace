package ring_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// seeded returns a generator whose seed the test prints when it fails.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %#x", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// pair uses heap memory, so that the race detector checks every slot.
func pair(c abi.QPCap) (client ring.ClientQP, server ring.ServerQP, layout abi.QPResponse) {
	layout = ring.QPLayout(c)
	mem := make([]byte, layout.Bytes)
	client.Init(mem, &layout, false)
	server.Init(mem, &layout)
	return client, server, layout
}

func TestLayoutHoldsWhatWasAsked(t *testing.T) {
	r := seeded(t)
	for range 2000 {
		c := abi.QPCap{MaxSendWR: r.Uint32N(5000) * r.Uint32N(2), MaxRecvWR: r.Uint32N(5000) * r.Uint32N(2),
			MaxSendSGE: r.Uint32N(33),
			MaxRecvSGE: r.Uint32N(33), MaxInline: r.Uint32N(961)}
		l := ring.QPLayout(c)
		switch {
		case !holds(&l.SQ, c.MaxSendWR, 64+max(c.MaxSendSGE*16, c.MaxInline)), !holds(&l.RQ, c.MaxRecvWR, 16+c.MaxRecvSGE*16):
			t.Fatalf("%+v: %+v and %+v", c, l.SQ, l.RQ)
		case l.RQ.Entries > 0 && l.SQ.Entries > 0 &&
			(l.RQ.HeadOffset < l.SQ.HeadOffset+128 || l.SQ.SlotsOffset < l.RQ.HeadOffset+128 ||
				l.RQ.SlotsOffset < l.SQ.SlotsOffset+l.SQ.Entries*l.SQ.Stride),
			l.Bytes < l.RQ.SlotsOffset+l.RQ.Entries*l.RQ.Stride, l.Bytes < l.SQ.SlotsOffset+l.SQ.Entries*l.SQ.Stride:
			t.Fatalf("%+v: rings overlap or pass the end: %+v", c, l)
		case l.Cap.MaxInline < c.MaxInline || l.Cap.MaxSendSGE < c.MaxSendSGE:
			t.Fatalf("%+v: got less: %+v", c, l.Cap)
		}
	}
}

// holds reports whether a queue has room for wrs slots of so many bytes; a queue for 0 must be absent.
func holds(l *abi.QueueLayout, wrs, slot uint32) bool {
	if wrs == 0 {
		return *l == abi.QueueLayout{}
	}
	return l.Entries >= wrs && l.Entries&(l.Entries-1) == 0 && l.Stride >= slot && l.SlotsOffset >= l.HeadOffset+128 &&
		l.HeadOffset%64 == 0 && l.SlotsOffset%64 == 0
}

// TestAbsentQueues: a queue that was not requested is full for its client and empty for urdmad, whatever
// happens to the other queue.
func TestAbsentQueues(t *testing.T) {
	for _, c := range []abi.QPCap{{MaxSendWR: 2, MaxSendSGE: 1}, {MaxRecvWR: 2, MaxRecvSGE: 1}, {}} {
		client, server, _ := pair(c)
		sends, recvs := 0, 0
		for client.SQ.Write(&abi.SQE{}, nil) {
			sends++
		}
		for client.RQ.Write(0, nil) {
			recvs++
		}
		client.SQ.Publish()
		client.RQ.Publish()
		if sends != int(c.MaxSendWR) || recvs != int(c.MaxRecvWR) || client.SQ.Free() != 0 || client.RQ.Free() != 0 {
			t.Errorf("%+v: %d sends and %d receives fit", c, sends, recvs)
		}
		if server.SQ.Slots() != sends || server.RQ.Slots() != recvs {
			t.Errorf("%+v: urdmad has %d and %d slots", c, server.SQ.Slots(), server.RQ.Slots())
		}
		sent, errS := server.SQ.Prod(0)
		received, errR := server.RQ.Prod(0)
		if errS != nil || errR != nil || int(sent) != sends || int(received) != recvs {
			t.Errorf("%+v: urdmad finds %d sends (%v) and %d receives (%v)", c, sent, errS, received, errR)
		}
		server.SQ.PublishFailed(0)
		lostS, lostR := 0, 0
		for _, _, ok := client.SQ.Lost(); ok; _, _, ok = client.SQ.Lost() {
			lostS++
		}
		for _, ok := client.RQ.Lost(); ok; _, ok = client.RQ.Lost() {
			lostR++
		}
		if lostS != sends || lostR != recvs {
			t.Errorf("%+v: %d sends and %d receives are owed", c, lostS, lostR)
		}
	}
}

// startAt sets all indices of a new ring close to the wrap at 2^32.
func startAt(c *ring.ClientQP, s *ring.ServerQP, at uint32) {
	ring.SetIndices(c, at)
	c.SQ.Publish()
	c.RQ.Publish()
	s.SQ.PublishCons(at)
	s.RQ.PublishCons(at)
}

func TestSlotsArriveAsWritten(t *testing.T) {
	r := seeded(t)
	c, s, _ := pair(abi.QPCap{MaxSendWR: 7, MaxRecvWR: 3, MaxSendSGE: 5, MaxRecvSGE: 4, MaxInline: 200})
	at := uint32(0xfffffff0)
	startAt(&c, &s, at)
	sqCons, rqCons := at, at
	for n := range 200 {
		sges := make([]abi.SGE, r.IntN(6))
		for i := range sges {
			sges[i] = abi.SGE{Addr: r.Uint64(), Length: r.Uint32(), LKey: r.Uint32()}
		}
		sent := abi.SQE{WRID: r.Uint64(), Opcode: uint32(n), RKey: r.Uint32(), RemoteAddr: r.Uint64()}
		data := make([]byte, r.IntN(c.SQ.MaxInline()+1))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		inline := r.IntN(2) == 0
		ok := false
		if inline {
			cut := r.IntN(len(data) + 1)
			ok = c.SQ.WriteInline(&sent, data[:cut], data[cut:])
		} else {
			ok = c.SQ.Write(&sent, sges)
		}
		if !ok || !c.RQ.Write(uint64(n), sges[:min(4, len(sges))]) {
			t.Fatalf("slot %d: no room in an empty ring", n)
		}
		if p, err := s.SQ.Prod(sqCons); err != nil || p != sqCons {
			t.Fatalf("slot %d visible before its publish: %d, %v", n, p, err)
		}
		c.SQ.Publish()
		c.RQ.Publish()
		if p, err := s.SQ.Prod(sqCons); err != nil || p != sqCons+1 {
			t.Fatalf("slot %d: producer %d, %v; expected %d", n, p, err, sqCons+1)
		}
		var sqe abi.SQE
		var rqe abi.RQE
		var got, gotR [32]abi.SGE
		s.SQ.Read(sqCons, &sqe, got[:])
		s.RQ.Read(rqCons, &rqe, gotR[:])
		if sqe.WRID != sent.WRID || sqe.RemoteAddr != sent.RemoteAddr || rqe.WRID != uint64(n) {
			t.Fatalf("slot %d: heads differ: %+v %+v", n, sqe, rqe)
		}
		if inline && !bytes.Equal(s.SQ.Inline(sqCons, sqe.InlineLength), data) {
			t.Fatalf("slot %d: inline data differ", n)
		}
		for i := range sges {
			if !inline && got[i] != sges[i] || i < 4 && gotR[i] != sges[i] {
				t.Fatalf("slot %d: element %d differs", n, i)
			}
		}
		c.Polled(&abi.CQE{Opcode: abi.WCRecv, Index: rqCons})
		sqCons, rqCons = sqCons+1, rqCons+1
		s.SQ.PublishCons(sqCons)
		s.RQ.PublishCons(rqCons)
	}
}

func TestFullAndTooLongAreRefused(t *testing.T) {
	c, s, l := pair(abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 2, MaxRecvSGE: 1, MaxInline: 10})
	startAt(&c, &s, 0xfffffffe)
	if c.SQ.Write(&abi.SQE{}, make([]abi.SGE, c.SQ.MaxSGE()+1)) ||
		c.SQ.WriteInline(&abi.SQE{}, make([]byte, c.SQ.MaxInline()+1)) ||
		c.RQ.Write(0, make([]abi.SGE, c.RQ.MaxSGE()+1)) {
		t.Fatal("a request larger than its slot was taken")
	}
	for i := range int(l.SQ.Entries) {
		if c.SQ.Free() != int(l.SQ.Entries)-i || c.RQ.Free() != int(l.RQ.Entries)-i {
			t.Fatalf("free %d and %d after %d", c.SQ.Free(), c.RQ.Free(), i)
		}
		if !c.SQ.Write(&abi.SQE{}, nil) || !c.RQ.Write(0, nil) {
			t.Fatalf("slot %d refused", i)
		}
	}
	if c.SQ.Write(&abi.SQE{}, nil) || c.RQ.Write(0, nil) {
		t.Fatal("a full ring took one more")
	}
	s.SQ.PublishCons(0xffffffff)
	if !c.SQ.Write(&abi.SQE{}, nil) || c.SQ.Write(&abi.SQE{}, nil) {
		t.Fatal("one freed slot is not one slot")
	}
}

func TestBadIndexIsReported(t *testing.T) {
	c, s, l := pair(abi.QPCap{MaxSendWR: 8, MaxRecvWR: 8})
	for _, over := range []uint32{l.SQ.Entries + 1, 1 << 31, 0xffffffff} {
		ring.SetIndices(&c, over)
		c.SQ.Publish()
		c.RQ.Publish()
		if _, err := s.SQ.Prod(0); err != ring.ErrIndex {
			t.Errorf("send producer %#x: %v, expected ErrIndex", over, err)
		}
		if _, err := s.RQ.Prod(0); err != ring.ErrIndex {
			t.Errorf("receive producer %#x: %v, expected ErrIndex", over, err)
		}
	}
}

// TestQueuesBothAtOnce runs producer and consumer in separate goroutines, so that -race checks all accesses.
func TestQueuesBothAtOnce(t *testing.T) {
	const total = 5000
	c, s, _ := pair(abi.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 3, MaxRecvSGE: 1})
	startAt(&c, &s, 0xffffff00)
	go func() {
		for n := range uint64(total) {
			sge := []abi.SGE{{Addr: n}, {Addr: n + 1}}
			for !c.SQ.Write(&abi.SQE{WRID: n}, sge) {
				runtime.Gosched()
			}
			c.SQ.Publish()
		}
	}()
	cons := uint32(0xffffff00)
	for n := uint64(0); n < total; {
		prod, err := s.SQ.Prod(cons)
		if err != nil {
			t.Fatal(err)
		}
		for ; cons != prod; cons++ {
			var e abi.SQE
			var sge [32]abi.SGE
			s.SQ.Read(cons, &e, sge[:])
			if e.WRID != n || e.NumSGE != 2 || sge[0].Addr != n || sge[1].Addr != n+1 {
				t.Fatalf("request %d arrived as %+v %+v", n, e, sge[:2])
			}
			n++
		}
		s.SQ.PublishCons(cons)
		runtime.Gosched()
	}
}

func completions(n uint32) (client ring.ClientCQ, server ring.ServerCQ) {
	l := ring.CQLayout(n)
	mem := make([]byte, l.Bytes)
	client.Init(mem, &l)
	server.Init(mem, &l)
	return client, server
}

func TestCompletionsWrapAndOverrun(t *testing.T) {
	c, s := completions(8)
	ring.SetCQIndices(&c, &s, 0xfffffffa)
	var out [16]abi.CQE
	for n := range uint64(100) {
		if !s.Push(&abi.CQE{WRID: n}) {
			t.Fatalf("completion %d refused", n)
		}
		if n%3 == 2 {
			if got := c.Poll(out[:]); got != 3 || out[0].WRID != n-2 || out[2].WRID != n {
				t.Fatalf("after %d: polled %d, first %d", n, got, out[0].WRID)
			}
		}
	}
	c.Poll(out[:])
	for i := range 8 {
		if !s.Push(&abi.CQE{}) {
			t.Fatalf("entry %d of 8 refused", i)
		}
	}
	if s.Push(&abi.CQE{}) {
		t.Fatal("a full queue took a completion")
	}
	if s.Pending() != 8 || c.Overrun() {
		t.Fatalf("pending %d, overrun %v", s.Pending(), c.Overrun())
	}
	s.MarkOverrun()
	if !c.Overrun() {
		t.Fatal("the overrun mark is not seen")
	}
}

func TestArmLevels(t *testing.T) {
	c, s := completions(8)
	steps := []struct {
		arm       []bool // arguments of Arm calls
		solicited bool   // properties of the completion
		event     bool
	}{
		{nil, true, false},
		{[]bool{true}, false, false},
		{nil, true, true}, // still armed for solicited
		{nil, true, false},
		{[]bool{false}, false, true},
		{[]bool{false, true}, false, true}, // armed for any is not reduced to solicited
		{[]bool{true, false}, false, true},
	}
	for i, st := range steps {
		for _, solicited := range st.arm {
			c.Arm(solicited)
		}
		if got := s.TakeArm(st.solicited); got != st.event {
			t.Fatalf("step %d: event %v, expected %v", i, got, st.event)
		}
	}
}

// TestNoEventIsLost: a consumer that arms, polls once more and then waits for an event never waits although a
// completion is there.
func TestNoEventIsLost(t *testing.T) {
	const total = 5000
	c, s := completions(64)
	events := make(chan struct{}, total)
	go func() {
		for n := range uint64(total) {
			for !s.Push(&abi.CQE{WRID: n}) {
				runtime.Gosched()
			}
			if s.TakeArm(false) {
				events <- struct{}{}
			}
		}
		close(events)
	}()
	var out [16]abi.CQE
	next := uint64(0)
	poll := func() int {
		n := c.Poll(out[:])
		for _, e := range out[:n] {
			if e.WRID != next {
				t.Errorf("completion %d, expected %d", e.WRID, next)
			}
			next++
		}
		return n
	}
	for next < total {
		if poll() > 0 {
			continue
		}
		c.Arm(false)
		if poll() > 0 {
			continue
		}
		if _, open := <-events; !open && poll() == 0 && next < total {
			t.Fatalf("no event for completion %d", next)
		}
	}
}

// TestNoPostIsSleptOver: the worker sleeps only if no doorbell has rung, and a doorbell that rings while it
// sleeps requests a kick.
func TestNoPostIsSleptOver(t *testing.T) {
	const total = 5000
	mem := make([]byte, abi.Size[abi.Doorbells]())
	var c ring.ClientBells
	var s ring.ServerBells
	c.Init(mem, 0)
	s.Init(mem, 0)
	kicks := make(chan struct{}, total)
	answered := make(chan struct{})
	go func() {
		for n := range total {
			if c.Ring(n * 7 % abi.NumDoorbells) {
				kicks <- struct{}{}
			}
			<-answered // one at a time, so that a single lost one shows
		}
		close(kicks)
	}()
	for n := 0; n < total; {
		if !s.Rung() {
			s.SetSleeping(true)
			if !s.Rung() {
				<-kicks
			}
			s.SetSleeping(false)
		}
		for w, sum := 0, s.Summary(); sum != 0; w, sum = w+1, sum>>1 {
			if sum&1 == 0 {
				continue
			}
			if word := s.Word(w); word != 1<<(n*7%abi.NumDoorbells&63) || w != n*7%abi.NumDoorbells>>6 {
				t.Fatalf("ring %d: word %d is %#x", n, w, word)
			}
			n++
			answered <- struct{}{}
		}
	}
}

// TestYieldIsTold: the values that urdmad states about yields reach the client, each in its field; if it
// states none they are 0.
func TestYieldIsTold(t *testing.T) {
	mem := make([]byte, abi.Size[abi.Doorbells]())
	var c ring.ClientBells
	var s ring.ServerBells
	c.Init(mem, 0)
	s.Init(mem, 0)
	if post, poll, core, alone := c.Yield(); post|poll|core|alone != 0 {
		t.Errorf("untold: %d, %d, %d, %d", post, poll, core, alone)
	}
	s.SetYield(1, 2, 4)
	s.SetCore(3)
	if post, poll, core, alone := c.Yield(); post != 1 || poll != 2 || core != 3 || alone != 4 {
		t.Errorf("told 1, 2, 3, 4: %d, %d, %d, %d", post, poll, core, alone)
	}
}
