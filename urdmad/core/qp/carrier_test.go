package qp

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// carrier is a Carrier at the test's pace: Transmit hands work requests over
// within its budget, whole and each with the next mark; the test acknowledges
// marks and answers Reads.
type carrier struct {
	Connection
	budget   int
	moved    []uint64 // ids of what was handed over, in order
	mark     uint64
	failed   int
	faulted  int
	detached int
}

func (c *carrier) Transmit() (n int) {
	s := &c.QP.SQ
	for ; n < c.budget && c.QP.Ready(); n++ {
		wr := s.At(s.Next())
		c.moved = append(c.moved, wr.id)
		c.mark++
		s.Sent(wr.Length, c.mark, false)
	}
	if n == c.budget {
		c.QP.t.Ready(c.QP)
	}
	return n
}

func (c *carrier) Failed()       { c.failed++; c.QP.Flush(reason.Left) }
func (c *carrier) Faulted() bool { c.faulted++; return false }
func (c *carrier) Detach()       { c.detached++; c.QP.Detach() }
func (c *carrier) Serving() int  { return 0 }

// rig is a connected queue pair with its client's side.
type rig struct {
	*testing.T
	table   *Table
	qp      *QP
	carrier *carrier
	ring    ring.ClientQP
	send    ring.ClientCQ
	recv    ring.ClientCQ
	async   int // where the client reads asynchronous events
	memory  *mem.Region
}

const testPD = 7

func newRig(t *testing.T, depth uint32) *rig {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	async := events.NewSocket(fds[0], nil)
	t.Cleanup(func() { async.Close(); unix.Close(fds[1]) })
	r := &rig{T: t, async: fds[1], carrier: &carrier{budget: 1 << 20}}
	src := rand.NewPCG(1, 2)
	r.table = NewTable(&clock.Clock{}, slog.New(slog.DiscardHandler), src, rand.New(src), nil)
	client := &Client{Name: "test", Space: mem.NewSpace(nil)}
	t.Cleanup(client.Space.Close)
	cq := func(c *ring.ClientCQ) *CQ {
		l := ring.CQLayout(depth + 8)
		m := make([]byte, l.Bytes)
		q := &CQ{Client: client, Async: async}
		q.Ring.Init(m, &l)
		c.Init(m, &l)
		return q
	}
	l := ring.QPLayout(abi.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 64})
	m := make([]byte, l.Bytes)
	r.qp = New(Config{Client: client, PD: testPD, SendCQ: cq(&r.send), RecvCQ: cq(&r.recv), Async: async, Cap: l.Cap}, m,
		&l)
	r.ring.Init(m, &l, false)
	r.table.Add(r.qp)
	r.memory = mem.NewRegion(client.Space, testPD, mem.LocalWrite, 4096, 4096, 0, mem.Mapping{Bytes: make([]byte, 4096)})
	if !r.table.Regions.Insert(r.memory) {
		t.Fatal("no STag left")
	}
	r.carrier.Connection = Connection{QP: r.qp, ORD: 2, IRD: 2, PeerAccepts: ImmediateData | Atomics}
	r.qp.Attach(r.carrier)
	return r
}

func (r *rig) sge(n uint32) abi.SGE {
	return abi.SGE{Addr: 4096, Length: n, LKey: uint32(r.memory.STag)}
}

// post posts and publishes work requests over n bytes each, and has them fetched.
func (r *rig) post(n uint32, wrs ...abi.SQE) {
	r.Helper()
	for i := range wrs {
		if !r.ring.SQ.Write(&wrs[i], []abi.SGE{r.sge(n)}) {
			r.Fatalf("work request %d does not fit", i)
		}
	}
	r.ring.SQ.Publish()
	r.qp.Post()
}

// turns serves the queue pair until it is no longer in line.
func (r *rig) turns() (n int) {
	r.Helper()
	for ; r.table.Waiting() > 0; n++ {
		if n > 1000 {
			r.Fatal("never comes to rest")
		}
		r.table.Transmit()
	}
	return n
}

// completions polls what there is and writes each as id:status.
func (r *rig) completions(c *ring.ClientCQ) (out []string) {
	var b [64]abi.CQE
	for n := c.Poll(b[:]); n > 0; n = c.Poll(b[:]) {
		for i := range b[:n] {
			r.ring.Polled(&b[i])
			out = append(out, fmt.Sprintf("%d:%d", b[i].WRID, b[i].Status))
		}
	}
	return out
}

func (r *rig) want(what string, got []string, want ...string) {
	r.Helper()
	if !slices.Equal(got, want) {
		r.Fatalf("%s: %q, expected %q", what, got, want)
	}
}

func (r *rig) wantMoved(want ...uint64) {
	r.Helper()
	if !slices.Equal(r.carrier.moved, want) {
		r.Fatalf("the carrier was handed %v, expected %v", r.carrier.moved, want)
	}
}

func write(id uint64) abi.SQE {
	return abi.SQE{WRID: id, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled}
}
func read(id uint64) abi.SQE {
	return abi.SQE{WRID: id, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled}
}

// answer plays the arrival of a Read's response.
func (r *rig) answer(i uint32) { r.qp.readAnswered(r.qp.SQ.At(i)) }

// TestOrder: what the carrier has carried completes from the oldest on, also past
// unsignaled work requests, and a Read holds up what is behind it.
func TestOrder(t *testing.T) {
	r := newRig(t, 16)
	silent := write(2)
	silent.Flags = 0
	r.post(100, write(1), silent, write(3), read(4), write(5))
	r.turns()
	r.wantMoved(1, 2, 3, 4, 5)
	r.want("before anything is acknowledged", r.completions(&r.send))
	r.qp.Acknowledge(2)
	r.want("two acknowledged", r.completions(&r.send), "1:0")
	r.qp.Acknowledge(5)
	r.want("all acknowledged, the Read not answered", r.completions(&r.send), "3:0")
	r.answer(3)
	r.want("the Read answered", r.completions(&r.send), "4:0", "5:0")
	if s := r.qp.Stats; s.MessagesSent != 5 || s.BytesSent != 500 || s.SendsPosted != 5 {
		t.Errorf("counted %+v", s)
	}
}

// TestFenceAndReadDepth: a fenced work request waits for all Reads before it, and
// no more Reads are open than the peer serves.
func TestFenceAndReadDepth(t *testing.T) {
	r := newRig(t, 16)
	fenced := write(5)
	fenced.Flags |= abi.SendFence
	r.post(8, read(1), write(2), read(3), read(4), fenced, write(6))
	r.turns()
	r.wantMoved(1, 2, 3) // two Reads are open
	r.answer(0)
	r.turns()
	r.wantMoved(1, 2, 3, 4)
	r.answer(2)
	r.turns()
	r.wantMoved(1, 2, 3, 4)
	r.answer(3)
	r.turns()
	r.wantMoved(1, 2, 3, 4, 5, 6)
}

// TestWrongWorkRequest: what is wrong fails in its turn, after what is before it
// and with everything behind flushed.
func TestWrongWorkRequest(t *testing.T) {
	atomic := abi.SQE{WRID: 2, Opcode: abi.WRAtomicFetchAndAdd}
	unknown := abi.SQE{WRID: 2, Opcode: 99}
	for name, c := range map[string]struct {
		w      abi.SQE
		n      uint32
		status uint32
	}{
		"opcode":            {unknown, 8, abi.StatusLocQPOpErr},
		"memory's end":      {write(2), 4097, abi.StatusLocProtErr},
		"an atomic's bytes": {atomic, 4, abi.StatusLocLenErr},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 16)
			r.post(8, write(1))
			r.post(c.n, c.w)
			r.post(8, write(3))
			if !r.ring.RQ.Write(9, nil) {
				t.Fatal("no room for a receive")
			}
			r.ring.RQ.Publish()
			r.turns()
			r.wantMoved(1)
			r.want("before the first is done", r.completions(&r.send))
			r.qp.Acknowledge(1)
			r.turns()
			r.want("sends", r.completions(&r.send), "1:0", fmt.Sprintf("2:%d", c.status),
				fmt.Sprintf("3:%d", abi.StatusWRFlushErr))
			r.want("receives", r.completions(&r.recv), fmt.Sprintf("9:%d", abi.StatusWRFlushErr))
			if r.carrier.failed != 1 || r.qp.State() != abi.QPSErr {
				t.Errorf("the carrier's Failed was called %d times, and the state is %d", r.carrier.failed, r.qp.State())
			}
		})
	}
}

// TestFloodOfPosts: who posts 16,384 at once is served a bounded part a turn, in
// order, and so flushed.
func TestFloodOfPosts(t *testing.T) {
	const flood = 16384
	r := newRig(t, flood)
	for i := range uint64(flood) {
		w := write(i)
		if !r.ring.SQ.Write(&w, nil) {
			t.Fatalf("post %d does not fit", i)
		}
	}
	r.ring.SQ.Publish()
	r.table.Ready(r.qp)
	r.table.Transmit() // a turn, which fetches what its budget allows
	if n := len(r.carrier.moved); n != fetchBudget {
		t.Errorf("a turn moved %d work requests, expected %d", n, fetchBudget)
	}
	for turn := 0; turn < 8; turn++ {
		r.table.Transmit()
	}
	if n := len(r.carrier.moved); n > 9*fetchBudget || !slices.IsSorted(r.carrier.moved) {
		t.Errorf("nine turns moved %d, in order: %v", n, slices.IsSorted(r.carrier.moved))
	}
	r.qp.Fail(EventFatal, reason.Memory)
	got := r.completions(&r.send) // what had been fetched, and a part of the rest
	if n := len(got); n > 10*fetchBudget {
		t.Errorf("%d were flushed at once", n)
	}
	for r.table.Waiting() > 0 {
		r.table.Transmit()
		now := r.completions(&r.send)
		if len(now) > fetchBudget {
			t.Fatalf("a turn flushed %d, expected at most %d", len(now), fetchBudget)
		}
		got = append(got, now...)
	}
	if len(got) != flood {
		t.Errorf("%d completions", len(got))
	}
	for i, c := range got {
		if want := fmt.Sprintf("%d:%d", i, abi.StatusWRFlushErr); c != want {
			t.Fatalf("completion %d is %s, expected %s", i, c, want)
		}
	}
}

// TestCarrierBudget: two queue pairs take turns, however much one of them has to
// send.
func TestCarrierBudget(t *testing.T) {
	r := newRig(t, 64)
	r.carrier.budget = 4
	for i := range uint64(32) {
		r.post(8, write(i))
	}
	for turn := 1; turn <= 8; turn++ {
		if n := r.table.Transmit(); n != 4 {
			t.Fatalf("turn %d moved %d, expected the budget of 4", turn, n)
		}
	}
	if r.table.Transmit(); r.table.Waiting() != 0 {
		t.Error("in line with nothing to send")
	}
}

// TestHostileIndex: an index that can't be ends the queue pair, tells the client,
// and touches nothing outside the ring.
func TestHostileIndex(t *testing.T) {
	for _, c := range []struct {
		name  string
		posts int
	}{{"none outstanding", 0}, {"some outstanding", 3}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 16)
			for i := range c.posts {
				r.post(8, write(uint64(i)))
			}
			r.turns()
			r.qp.SQ.tail += 1 << 20 // as if the client's index lay far behind
			r.qp.SQ.head, r.qp.SQ.next = r.qp.SQ.tail, r.qp.SQ.tail
			r.qp.Post()
			if r.qp.State() != abi.QPSErr || r.carrier.failed != 1 {
				t.Errorf("state %d, Failed called %d times", r.qp.State(), r.carrier.failed)
			}
			var ev [64]byte
			if n, err := unix.Read(r.async, ev[:]); n < abi.Size[abi.AsyncEvent]() || err != nil {
				t.Fatalf("no event: %d bytes, %v", n, err)
			}
			if e, _ := abi.Decode[abi.AsyncEvent](ev[:abi.Size[abi.AsyncEvent]()]); e.EventType != EventFatal {
				t.Errorf("event %d, expected %d", e.EventType, EventFatal)
			}
		})
	}
}

// TestAccessFlags: region and queue pair both have to grant a right.
func TestAccessFlags(t *testing.T) {
	r := newRig(t, 16)
	const all = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic
	for _, c := range []struct {
		region, pair, want uint32
		verdict            mem.Violation
	}{
		{all, all, mem.RemoteWrite, mem.Allowed},
		{all, mem.RemoteRead, mem.RemoteRead, mem.Allowed},
		{all, mem.RemoteRead, mem.RemoteWrite, mem.NoRight},
		{all, 0, mem.RemoteAtomic, mem.NoRight},
		{mem.RemoteRead, all, mem.RemoteWrite, mem.NoRight},
		{mem.RemoteRead, all, mem.RemoteRead, mem.Allowed},
	} {
		m := mem.NewRegion(r.qp.Client.Space, testPD, c.region, 0, 100, 0, mem.Mapping{Bytes: make([]byte, 100)})
		r.table.Regions.Insert(m)
		r.qp.Attr.QPAccessFlags = c.pair
		if got := r.qp.checkRemote(m, 0, 100, c.want); got != c.verdict {
			t.Errorf("region %#x, queue pair %#x: %#x is %v, expected %v", c.region, c.pair, c.want, got, c.verdict)
		}
	}
}

// TestReceive: a receive is scattered over its list, completes with what came, and
// one whose memory is not the client's fails alone.
func TestReceive(t *testing.T) {
	r := newRig(t, 16)
	if v := r.qp.BeginReceive(0, 0); v.Is != NoReceive {
		t.Errorf("without a receive: %v", v)
	}
	two := []abi.SGE{{Addr: 4096, Length: 4, LKey: uint32(r.memory.STag)},
		{Addr: 4200, Length: 8, LKey: uint32(r.memory.STag)}}
	r.ring.RQ.Write(1, two)
	r.ring.RQ.Write(2, []abi.SGE{{Addr: 4096, Length: 4, LKey: uint32(r.memory.STag) ^ 1}})
	r.ring.RQ.Publish()
	if v := r.qp.BeginReceive(0, 13); v.Is != NoRoom {
		t.Fatalf("13 bytes: %v", v)
	}
	if v := r.qp.BeginReceive(0, 12); v.Is != Done {
		t.Fatalf("12 bytes: %v", v)
	}
	for _, part := range []string{"ab", "cdefg", "hij"} {
		if v := r.qp.PlaceSend([]byte(part), uint64(len(part))); v.Is != Done {
			t.Fatalf("%q: %v", part, v)
		}
	}
	if v := r.qp.PlaceSend([]byte("k"), 3); v.Is != TooLong {
		t.Errorf("13 bytes: %v", v)
	}
	r.qp.EndSend(Ending{})
	bytes := r.memory.Bytes(4096, 4096)
	if got := string(bytes[:4]) + string(bytes[104:110]); got != "abcdefghij" || r.qp.Stats.BytesRecv != 10 {
		t.Errorf("scattered %q, counted %d", got, r.qp.Stats.BytesRecv)
	}
	if v := r.qp.BeginReceive(0, 0); v.Is != BadReceive {
		t.Errorf("a wrong key: %v", v)
	}
	r.want("receives", r.completions(&r.recv), "1:0", fmt.Sprintf("2:%d", abi.StatusLocProtErr))
}

// TestRevoked: memory that was deregistered is neither read nor written, whatever
// still holds its pages.
func TestRevoked(t *testing.T) {
	r := newRig(t, 16)
	r.post(8, write(1))
	r.ring.RQ.Write(2, []abi.SGE{r.sge(8)})
	r.ring.RQ.Publish()
	if r.qp.BeginReceive(0, 0).Is != Done {
		t.Fatal("no receive")
	}
	bytes := r.memory.Bytes(4096, 8)
	r.table.Regions.Remove(r.memory)
	var out [8]byte
	if r.qp.Gather(out[:], r.qp.SQ.At(0), 0) {
		t.Error("gathers from memory that was deregistered")
	}
	if r.qp.PlaceSend([]byte("x"), 1).Is != Revoked || bytes[0] != 0 {
		t.Error("scatters into memory that was deregistered")
	}
}

// TestRemove: a queue pair that goes away leaves its carrier, the line and its
// count.
func TestRemove(t *testing.T) {
	r := newRig(t, 16)
	r.post(8, write(1))
	r.table.Remove(r.qp)
	if r.carrier.detached != 1 || r.table.Waiting() != 0 || r.table.Len() != 0 {
		t.Errorf("detached %d times, %d in line, %d left", r.carrier.detached, r.table.Waiting(), r.table.Len())
	}
	if past := r.table.Past(); past.SendsPosted != 1 {
		t.Errorf("forgot what it did: %+v", past)
	}
	r.table.Wake(r.qp)
	if r.table.Waiting() != 0 {
		t.Error("in line after it was removed")
	}
}
