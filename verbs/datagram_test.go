package verbs_test

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
	"urdma/verbs/abi"
)

// end is a queue pair without rdma_cm, with a completion queue and memory.
type end struct {
	*verbs.QP
	cq     *verbs.CQ
	memory *verbs.MR
}

const endBytes = 64 << 10

func newEnd(t testing.TB, c *verbs.Client, o verbs.QPOptions) *end {
	t.Helper()
	x := must(c.Devices()[0].Open())(t)
	e := &end{cq: must(x.CreateCQ(64, must(x.CreateCompChannel())(t)))(t)}
	pd := must(x.AllocPD())(t)
	e.memory = must(pd.AllocMemory(endBytes, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead))(t)
	e.QP = must(pd.CreateQP(e.cq, e.cq, o))(t)
	return e
}

// newDatagrams makes an end for datagrams.
func newDatagrams(t testing.TB, c *verbs.Client, qkey uint32) *end {
	t.Helper()
	e := newEnd(t, c, verbs.QPOptions{Type: verbs.UD})
	ok(t, e.StartDatagrams(qkey))
	return e
}

// next takes one completion, which must have this status.
func (e *end) next(t testing.TB, status verbs.Status) verbs.Completion {
	t.Helper()
	var one [1]verbs.Completion
	must(e.cq.Wait(patience(t), one[:]))(t)
	if one[0].Status != status {
		t.Fatalf("completion %+v, expected %v", one[0], status)
	}
	return one[0]
}

// nothing fails if a completion comes.
func (e *end) nothing(t testing.TB, what string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer stop()
	var one [1]verbs.Completion
	if n, err := e.cq.Wait(ctx, one[:]); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: completion %+v, %v", what, one[0], err)
	}
}

// receive posts a receive of n bytes at an offset, which is also its ID.
func (e *end) receive(t testing.TB, at, n int) {
	t.Helper()
	ok(t, e.PostRecv(&verbs.RecvWR{ID: uint64(at), SGE: []verbs.SGE{e.memory.SGE(at, n)}}))
}

// say sends a few bytes to a destination and takes the completion.
func (e *end) say(t testing.TB, text string, to verbs.Destination) {
	t.Helper()
	ok(t, e.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte(text), To: to}))
	e.next(t, verbs.StatusSuccess)
}

// hear takes a completed receive and returns the datagram.
func (e *end) hear(t testing.TB) (string, verbs.Completion) {
	t.Helper()
	c := e.next(t, verbs.StatusSuccess)
	if c.Op != verbs.DidRecv || !c.HasGRH || c.ByteLen < verbs.GRHLen {
		t.Fatalf("completion %+v, expected that of a datagram's receive", c)
	}
	return string(e.memory.Bytes()[int(c.ID)+verbs.GRHLen : int(c.ID)+int(c.ByteLen)]), c
}

func (e *end) at(qkey uint32) verbs.Destination {
	return verbs.Destination{Number: e.Number(), QKey: qkey}
}

// TestDatagrams: messages of all lengths to a queue pair given by number, and answers to the senders in the
// completions; every second one with immediate data.
func TestDatagrams(t *testing.T) {
	const qkey, out = 0x1234567, 32 << 10
	d := startDaemon(t)
	asks, answers := newDatagrams(t, d.open(), qkey), newDatagrams(t, d.open(), qkey)
	longest := asks.PD().Context().Device().MaxDatagram
	exchange := func(from, to *end, where verbs.Destination, n, length int) verbs.Completion {
		to.receive(t, 0, verbs.GRHLen+longest)
		fill(from.memory.Bytes()[out:out+length], n)
		wr := verbs.SendWR{ID: uint64(n), Op: verbs.OpSend, Flags: verbs.Signaled,
			SGE: []verbs.SGE{from.memory.SGE(out, length)}, To: where}
		if n%2 == 1 {
			wr.Op, wr.Imm = verbs.OpSendWithImm, uint32(n)<<16|7
		}
		ok(t, from.PostSend(&wr))
		if c := from.next(t, verbs.StatusSuccess); c.ID != uint64(n) || c.Op != verbs.DidSend || c.HasGRH {
			t.Fatalf("send %d: completion %+v", n, c)
		}
		text, c := to.hear(t)
		if len(text) != length || c.SrcQPN != from.QPN() || c.QPN != to.QPN() || c.HasImm != (n%2 == 1) ||
			c.HasImm && c.Imm != wr.Imm {
			t.Fatalf("datagram %d of %d bytes: completion %+v from queue pair %d", n, length, c, from.QPN())
		}
		check(t, []byte(text), n)
		return c
	}
	for n := range 100 {
		length := []int{0, 1, longest, n * 41 % longest}[n%4]
		c := exchange(asks, answers, answers.at(qkey), n, length)
		h := must(verbs.ParseGRH(answers.memory.Bytes()))(t)
		if want := (verbs.GRH{Src: asks.Number().Addr, Dst: answers.Number().Addr, HopLimit: 64}); h != want {
			t.Fatalf("header %+v, expected %+v", h, want)
		}
		back := must(c.Sender(answers.memory.Bytes(), qkey))(t)
		if back != asks.at(qkey) {
			t.Fatalf("sender %+v, expected %+v", back, asks.at(qkey))
		}
		exchange(answers, asks, back, n+1, longest-length)
	}
}

// TestDatagramsLost: a datagram with another Q_Key, to an unused number, or too long for the receive
// completes at the sender and is not received; a Q_Key with the top bit means the sender's own.
func TestDatagramsLost(t *testing.T) {
	d := startDaemon(t)
	from, to := newDatagrams(t, d.open(), 7), newDatagrams(t, d.open(), 8)
	to.receive(t, 0, verbs.GRHLen+10)
	nobody := to.at(8)
	nobody.QPN ^= 0x800000
	from.say(t, "wrong", to.at(9))
	from.say(t, "own", to.at(8|1<<31))
	from.say(t, "nobody", nobody)
	from.say(t, "much too long", to.at(8))
	to.nothing(t, "what is to be dropped")
	from.say(t, "right", to.at(8))
	if text, _ := to.hear(t); text != "right" {
		t.Errorf("heard %q", text)
	}
	ok(t, from.Modify(&verbs.QPAttr{QKey: 8}, abi.QPMaskQKey))
	to.receive(t, 0, verbs.GRHLen+10)
	from.say(t, "own", to.at(1<<31))
	if text, _ := to.hear(t); text != "own" {
		t.Errorf("heard %q", text)
	}
}

// TestDatagramStates: after a failed send, sends stop and receives continue until a move to RTS; the end of
// urdmad flushes the receives.
func TestDatagramStates(t *testing.T) {
	d := startDaemon(t)
	e := newEnd(t, d.open(), verbs.QPOptions{Type: verbs.UD})
	wr := verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte("early"), To: e.at(5)}
	if err := e.PostSend(&wr); !errors.Is(err, verbs.ErrState) {
		t.Errorf("a send before the start: %v", err)
	}
	e.receive(t, 0, 100)
	e.receive(t, 100, 100)
	ok(t, e.StartDatagrams(5))
	if err := e.StartDatagrams(5); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a second start: %v", err)
	}
	bad := e.memory.SGE(0, 8)
	bad.LKey ^= 0xff00
	ok(t, e.PostSend(&verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{bad}, To: e.at(5)}))
	e.next(t, verbs.StatusLocProtErr)
	if attr := must(e.Query())(t); attr.QPState != abi.QPSSQE || attr.QKey != 5 {
		t.Errorf("state %d and Q_Key %d after a send that failed", attr.QPState, attr.QKey)
	}
	ok(t, e.PostSend(&wr))
	e.next(t, verbs.StatusWRFlushErr)
	other := newDatagrams(t, d.open(), 5)
	other.say(t, "go on", e.at(5))
	if text, _ := e.hear(t); text != "go on" {
		t.Errorf("heard %q", text)
	}
	ok(t, e.Modify(&verbs.QPAttr{QPState: abi.QPSRTS}, abi.QPMaskState))
	other.receive(t, 0, 100)
	e.say(t, "well again", other.at(5))
	if text, _ := other.hear(t); text != "well again" {
		t.Errorf("heard %q", text)
	}
	d.Kill()
	if c := e.next(t, verbs.StatusWRFlushErr); c.ID != 100 || c.Op != verbs.DidRecv {
		t.Errorf("completion %+v after urdmad's end", c)
	}
}

// TestDatagramGroups: all members of a group except the sender receive a datagram.
func TestDatagramGroups(t *testing.T) {
	d := startDaemon(t)
	group, gid := netip.MustParseAddr("239.4.5.6"), netip.MustParseAddr("ff12:401b::104:506") // the same group
	var members [3]*end
	for i := range members {
		members[i] = newDatagrams(t, d.open(), 3)
		ok(t, members[i].AttachMcast([]netip.Addr{group, gid, netip.AddrFrom16(group.As16())}[i]))
		members[i].receive(t, 0, 100)
		members[i].receive(t, 100, 100)
	}
	for round, to := range []netip.Addr{group, gid} {
		members[0].say(t, "to all", verbs.Destination{Number: verbs.Number{Addr: to, QPN: verbs.MulticastQPN}, QKey: 3})
		for _, m := range members[1:] {
			text, c := m.hear(t)
			h := must(verbs.ParseGRH(m.memory.Bytes()[c.ID:]))(t)
			if text != "to all" || h.Dst != group || c.SrcQPN != members[0].QPN() {
				t.Errorf("round %d: heard %q, %+v, %+v", round, text, h, c)
			}
		}
	}
	ok(t, members[1].DetachMcast(group))
	if err := members[1].DetachMcast(group); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("leaving a group twice: %v", err)
	}
	members[1].receive(t, 0, 100)
	members[0].say(t, "to few", verbs.Destination{Number: verbs.Number{Addr: group, QPN: verbs.MulticastQPN}, QKey: 3})
	members[0].nothing(t, "the sender's own datagram")
	members[1].nothing(t, "a datagram to a group that was left")
	for _, wrong := range []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1")} {
		if err := members[0].AttachMcast(wrong); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("joining %v: %v", wrong, err)
		}
	}
}

// TestDatagramErrors: refused calls and their errors.
func TestDatagramErrors(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	ud, uc := newDatagrams(t, c, 1), newEnd(t, c, verbs.QPOptions{Type: verbs.UC})
	longest, to := c.Devices()[0].MaxDatagram, ud.at(1)
	nobody := verbs.Destination{Number: verbs.Number{Addr: netip.IPv6Unspecified(), QPN: 5}}
	for what, wr := range map[string]verbs.SendWR{
		"no destination":  {Op: verbs.OpSend},
		"::":              {Op: verbs.OpSend, To: nobody},
		"a Write":         {Op: verbs.OpWrite, To: to},
		"a Read":          {Op: verbs.OpRead, To: to},
		"an invalidation": {Op: verbs.OpSendWithInv, To: to},
		"a byte too many": {Op: verbs.OpSend, To: to, SGE: []verbs.SGE{ud.memory.SGE(0, longest+1)}},
	} {
		if err := ud.PostSend(&wr); !errors.Is(err, verbs.ErrWorkRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, sixth := ud.PD().CreateQP(ud.cq, ud.cq, verbs.QPOptions{Type: 8})
	_, dialed := c.Dial(patience(t), "198.18.0.1:7", &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.UC}})
	_, notSent := (&verbs.Completion{Op: verbs.DidSend}).Sender(make([]byte, verbs.GRHLen), 1)
	_, short := verbs.ParseGRH(make([]byte, verbs.GRHLen-1))
	_, empty := verbs.ParseGRH(make([]byte, verbs.GRHLen))
	for what, got := range map[string]struct{ err, want error }{
		"raw packets":                 {sixth, syscall.EOPNOTSUPP},
		"a connection of UC":          {dialed, syscall.EINVAL},
		"connecting UD":               {ud.ConnectNumber(uc.Number()), syscall.EINVAL},
		"datagrams of UC":             {uc.StartDatagrams(1), syscall.EINVAL},
		"a group for UC":              {uc.AttachMcast(netip.MustParseAddr("239.1.1.1")), syscall.EINVAL},
		"the sender of what was sent": {notSent, syscall.EINVAL},
		"39 bytes of a header":        {short, syscall.EINVAL},
		"a header that is not of IP":  {empty, syscall.EPROTONOSUPPORT},
	} {
		if !errors.Is(got.err, got.want) {
			t.Errorf("%s: %v, expected %v", what, got.err, got.want)
		}
	}
}

// TestParseGRH6: an IPv6 header fills the 40 bytes in front of a datagram.
func TestParseGRH6(t *testing.T) {
	src, dst := netip.MustParseAddr("fd00::2"), netip.MustParseAddr("ff15::7")
	b := append([]byte{0x61, 0x20, 0, 0, 0, 38, 17, 63}, src.AsSlice()...)
	b = append(b, dst.AsSlice()...)
	if h, err := verbs.ParseGRH(b); err != nil || h != (verbs.GRH{Src: src, Dst: dst, HopLimit: 63, TrafficClass: 0x12}) {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestParseGRH: a header as described in docs/WIRE.md chapter 10.
func TestParseGRH(t *testing.T) {
	b := make([]byte, 20, 64)
	b = append(b, 0x45, 0x08, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00, 0x3f, 0x11, 0x00, 0x00, 10, 1, 2, 3, 239, 4, 5, 6)
	b = append(b, "the message"...)
	want := verbs.GRH{Src: netip.MustParseAddr("10.1.2.3"), Dst: netip.MustParseAddr("239.4.5.6"), HopLimit: 63,
		TrafficClass: 8}
	if h := must(verbs.ParseGRH(b))(t); h != want {
		t.Errorf("header %+v, expected %+v", h, want)
	}
	c := verbs.Completion{Op: verbs.DidRecv, HasGRH: true, SrcQPN: 77}
	to := must(c.Sender(b, 5))(t)
	if to != (verbs.Destination{Number: verbs.Number{Addr: want.Src, QPN: 77}, QKey: 5}) {
		t.Errorf("sender %+v", to)
	}
}

// TestLastDatagrams: datagrams posted before a queue pair is closed or its program ends are sent, even if no
// call waited for their completion: a program may send and exit (mckey). In some rounds the worker sleeps, in
// others it is about to wake.
func TestLastDatagrams(t *testing.T) {
	const qkey, each = 0x1234567, 16
	d := startDaemon(t)
	answers, c := newDatagrams(t, d.open(), qkey), d.open()
	asks := newEnd(t, c, verbs.QPOptions{Type: verbs.UD})
	leave := func(round int, q *verbs.QP, close func() error) {
		for i := range each {
			answers.receive(t, i*256, 256)
		}
		ok(t, q.StartDatagrams(qkey))
		time.Sleep(time.Duration(round%8) * 50 * time.Microsecond)
		for i := range each {
			ok(t, q.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: []byte{byte(i)}, To: answers.at(qkey)}))
		}
		ok(t, close())
		for i := range each {
			if text, _ := answers.hear(t); text != string([]byte{byte(i)}) {
				t.Fatalf("round %d: datagram %d is %q", round, i, text)
			}
		}
	}
	for round := range 100 {
		q := must(asks.PD().CreateQP(asks.cq, asks.cq, verbs.QPOptions{Type: verbs.UD}))(t)
		leave(round, q, q.Close)
	}
	for round := range 50 {
		c := d.open()
		leave(round, newEnd(t, c, verbs.QPOptions{Type: verbs.UD}).QP, c.Close)
	}
}
