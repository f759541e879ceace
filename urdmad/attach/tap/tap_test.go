package tap_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// recorder keeps everything that it is shown.
type recorder struct {
	*enginetest.Recorder
	t testing.TB
}

func record(t testing.TB, h *enginetest.Host) *recorder { return &recorder{enginetest.Record(t, h), t} }

// TestTapSeesBothDirections: frames that one side's tap saw leave are those that the other's saw arrive, byte for
// byte and in order; each frame has the right owner.
func TestTapSeesBothDirections(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 60})
	a, b := record(t, w.A), record(t, w.B)
	x, y := w.Pair(false, nil)
	w.NewTraffic(x, y, enginetest.Load{Ops: 200, MaxSize: 40000}).Run(60 * time.Second)
	w.Pass(10 * time.Millisecond)
	for _, way := range [2][2][][]byte{{a.Went(true), b.Went(false)}, {b.Went(true), a.Went(false)}} {
		if !slices.EqualFunc(way[0], way[1], bytes.Equal) || len(way[0]) < 500 {
			t.Errorf("%d frames left and %d came, or they differ", len(way[0]), len(way[1]))
		}
	}
	mine := 0
	for _, f := range a.Frames {
		if f.Foreign || f.Local || f.Note != "" {
			t.Fatalf("frame %+v of a clean wire", f)
		}
		if f.Conn == nil {
			continue
		}
		if f.Conn != x.Q.Connection() || f.Our != f.Conn.Local || f.Peer.Addr() != f.Conn.Peer.Addr() ||
			f.Our.Addr() != w.A.Addr {
			t.Fatalf("a frame is %+v", f.Sight)
		}
		mine++
	}
	if mine < 500 {
		t.Errorf("%d frames belong to the connection", mine)
	}
}

// TestTapNotes: a frame that is not simply accepted has a note: the reason, or the counters that it has changed.
func TestTapNotes(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 61})
	r := record(t, w.A)
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	memory := q.Client.Register(4096, enginetest.ReadWrite)
	l := s.Dial(q, 4)
	message := make([]byte, 100)
	d := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}
	d.Put(message)
	expect := func(note string, send func()) {
		t.Helper()
		from := len(r.Frames)
		send()
		w.Pass(time.Millisecond)
		for _, f := range r.Frames[from:] {
			if !f.Out {
				if f.Note != note {
					t.Errorf("note %q, expected %q", f.Note, note)
				}
				return
			}
		}
		t.Errorf("expected %q, and nothing came", note)
	}
	forged, ahead, elsewhere := *l, *l, *l
	forged.Cookie++
	elsewhere.Ours++
	ahead.Ack = l.Ack.Add(7000)
	expect("stray_address", func() { forged.Send(wire.OpData, l.PSN, message) })
	expect("stray_address", func() { elsewhere.Send(wire.OpData, l.PSN, message) })
	expect("bad_ack", func() { ahead.Send(wire.OpData, l.PSN, message) })
	expect("outside_window", func() { l.Send(wire.OpData, l.PSN.Add(5000), message) })
	expect("no_connection", func() {
		s.SendFrame(s.Datagram(l.Ours, l.Theirs+1, l.Packet(wire.OpData, l.PSN, message)))
	})
	expect("dropped: checksum wrong", func() {
		frame := s.Datagram(l.Ours, l.Theirs, l.Packet(wire.OpData, l.PSN, message))
		frame[len(frame)-1]++
		s.SendFrame(frame)
	})
	expect("receiver_not_ready", func() { l.Raw(message) })
	q.PostRecv(1, memory.SGE(0, 4096))
	w.Pass(10 * time.Millisecond)
	expect("duplicates", func() { l.Send(wire.OpData, l.PSN.Add(^uint32(0)), message) })
	expect("held", func() { l.Send(wire.OpData, l.PSN.Add(1), message) })
	other := s.Datagram(l.Ours, l.Theirs, []byte("of another host"))
	other[33]++ // the address
	s.SendFrame(other)
	w.Pass(time.Millisecond)
	if last := r.Frames[len(r.Frames)-1]; !last.Foreign {
		t.Errorf("another host's frame is taken for ours: %+v", last.Sight)
	}
}

// TestTapOfALocalConnection: the synthesized frames of a connection within one urdmad carry the same as a wire does
// for the same workload.
func TestTapOfALocalConnection(t *testing.T) {
	for seed := uint64(1); seed <= enginetest.Seeds(5); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareWithWire(t, seed) })
	}
}

func compareWithWire(t *testing.T, seed uint64) {
	carried := map[bool][2][]string{}
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: seed})
		r := record(t, w.A)
		x, y := w.Pair(local, nil)
		w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(60 * time.Second)
		w.Pass(10 * time.Millisecond)
		carried[local] = r.segments(x.Q.Connection())
	}
	for side, name := range [2]string{"our", "the peer's"} {
		wire, local := carried[false][side], carried[true][side]
		slices.Sort(wire) // the order of requests and read responses depends on time
		slices.Sort(local)
		if len(wire) < 100 || !slices.Equal(wire, local) {
			t.Errorf("%d of %s segments on the wire, %d made up, or they differ:\n%.2000s\n%.2000s", len(wire), name, len(local),
				strings.Join(wire, "\n"), strings.Join(local, "\n"))
		}
	}
}

// segments describes every segment of a connection, ours and the peer's, without STags and addresses. It checks that
// sequence numbers have no gap, and that acknowledgements are possible.
func (r *recorder) segments(ours *qp.Connection) (sides [2][]string) {
	t := r.t
	var next [2]wire.PSN
	var begun [2]bool
	for _, f := range r.Frames {
		if f.Conn == nil {
			continue
		}
		side := 0
		if f.Local && f.Conn != ours || !f.Local && !f.Out {
			side = 1
		}
		var outer wire.Frame
		var trp wire.TRP
		if err := outer.Parse(f.Frame, len(f.Frame)); err != nil {
			t.Fatal(err)
		}
		payload := f.Frame[outer.PayloadOff : outer.PayloadOff+outer.PayloadLen]
		if wire.TRPOp(payload[8] >> 4).IsControl() {
			continue
		}
		at, err := trp.Parse(payload)
		if err != nil {
			t.Fatal(err)
		}
		segment := payload[at:]
		if trp.Op != wire.OpData || len(segment) == 0 {
			continue
		}
		if f.Local && (trp.PSN != next[side] || trp.Ack != next[1-side]) {
			t.Fatalf("PSN %d and ACK %d of side %d, expected %d and %d", trp.PSN, trp.Ack, side, next[side], next[1-side])
		}
		if begun[side] && trp.PSN != next[side] {
			t.Fatalf("PSN %d of side %d, expected %d", trp.PSN, side, next[side])
		}
		begun[side], next[side] = true, trp.PSN.Add(1)
		sides[side] = append(sides[side], describe(t, segment))
	}
	return sides
}

func describe(t testing.TB, segment []byte) string {
	var d wire.DDP
	at, err := d.Parse(segment)
	if err != nil {
		t.Fatal(err)
	}
	payload := segment[at:]
	if d.Op == wire.OpReadRequest {
		var q wire.ReadRequest
		if _, err := q.Parse(payload); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("read MSN %d of %d bytes at %d", d.MSN, q.Length, q.SrcTO)
	}
	if d.Op == wire.OpAtomicRequest || d.Op == wire.OpAtomicResponse {
		// request and STag
		names := map[wire.Opcode][2]int{wire.OpAtomicRequest: {4, 12}, wire.OpAtomicResponse: {0, 4}}[d.Op]
		clear(payload[names[0]:names[1]])
		return fmt.Sprintf("op %d MSN %d: %x", d.Op, d.MSN, payload)
	}
	return fmt.Sprintf("op %d last %v QN %d MSN %d MO %d TO %d: %d bytes %x", d.Op, d.Last, d.QN, d.MSN, d.MO, d.TO,
		len(payload),
		payload[:min(len(payload), 16)])
}

// TestTapOfPrivateMemory: messages from memory that urdmad can't map are shown completely.
func TestTapOfPrivateMemory(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 63})
	r := record(t, w.A)
	x, y := w.Pair(true, nil)
	private := x.Client.RegisterFallback(4096, enginetest.ReadWrite)
	to := y.Client.Register(8192, enginetest.ReadWrite)
	from := len(r.Frames)
	y.PostRecv(1, to.SGE(4096, 4096))
	x.Post(enginetest.Send(1), private.SGE(0, 4096))
	x.Post(enginetest.Write(2, to, 0), private.SGE(0, 4096))
	x.Post(enginetest.Read(3, to, 0), private.SGE(0, 4096))
	x.Send.Completions(3)
	for _, f := range r.Frames[from:] {
		if len(f.Frame) != f.Length {
			t.Errorf("%d bytes of a frame of %d", len(f.Frame), f.Length)
		}
	}
	if n := len(r.Frames) - from; n != 3*3+1 { // a segment has some 1,400 bytes
		t.Errorf("%d frames", n)
	}
}

// TestTapOfTruncatedFile: if a client's file is truncated after urdmad's access, the client is not ended because a
// capture reads the file.
func TestTapOfTruncatedFile(t *testing.T) {
	outcome := func(turn int, tapped bool) string {
		w := enginetest.New(t, enginetest.Options{Seed: 65, NoCapture: true})
		if tapped {
			record(t, w.A)
		}
		x, y := w.Pair(true, nil)
		private := x.Client.RegisterFallback(4096, enginetest.ReadWrite)
		file := y.Client.RegisterFile(4096, enginetest.ReadWrite)
		x.Post(enginetest.Read(1, file, 0), private.SGE(0, 4096))
		w.Intrude = func() {
			if turn--; turn == 0 {
				if err := file.File.Truncate(0); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.Pass(20 * time.Millisecond)
		return fmt.Sprint(x.Send.Poll(), x.Client.Faults, y.Client.Faults)
	}
	for turn := range 6 {
		if got, want := outcome(turn, true), outcome(turn, false); got != want {
			t.Errorf("truncated in turn %d: %s, without a capture %s", turn, got, want)
		}
	}
}

// TestTapOfRefusal: when a connection ends, captures show the refused message and the Terminate, but no flushed
// messages.
func TestTapOfRefusal(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 64})
	r := record(t, w.A)
	x, y := w.Pair(true, nil)
	mine, theirs := x.Client.Register(64, enginetest.ReadWrite), y.Client.Register(64, abi.AccessLocalWrite)
	y.Post(enginetest.Send(1), theirs.SGE(0, 64)) // waits for a receive
	w.Pass(time.Millisecond)
	from := len(r.Frames)
	x.Post(enginetest.Write(1, theirs, 0), mine.SGE(0, 64))
	x.Post(enginetest.Send(2), mine.SGE(0, 64))
	x.Send.Completions(2)
	y.Send.Completions(1)
	if n := len(r.Frames) - from; n != 2 {
		t.Errorf("%d frames", n)
	}
}

// TestTapOfOtherFamily: a connection within one urdmad to the loopback address of the family that its port does not
// have is shown completely, on ports of frames and of datagrams with any MTU.
func TestTapOfOtherFamily(t *testing.T) {
	for _, c := range []struct {
		v6       bool
		loopback netip.Addr
	}{{false, netip.IPv6Loopback()}, {true, netip.AddrFrom4([4]byte{127, 0, 0, 1})}} {
		for _, datagrams := range []bool{false, true} {
			for _, mtu := range []int{1280, 1500, 2000, 4096, 9000} {
				t.Run(fmt.Sprintf("%v/datagrams %v/%d", c.loopback, datagrams, mtu), func(t *testing.T) {
					w := enginetest.New(t, enginetest.Options{Seed: 62, Datagrams: datagrams, IPv6: c.v6, MTU: mtu})
					r := record(t, w.A)
					a, b := w.A.NewClient(), w.A.NewClient()
					x, y := a.NewQP(nil), b.NewQP(nil)
					b.ListenAt(netip.IPv6Unspecified(), 7000, 8)
					id := a.Resolve(c.loopback, 7000)
					a.Connect(id, x, enginetest.Param(4, "hello"))
					b.Accept(b.Event(cm.EventConnectRequest, time.Second).Child, y, enginetest.Param(4, ""))
					a.Event(cm.EventEstablished, time.Second)
					b.Event(cm.EventEstablished, time.Second)
					w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 1 << 16}).Run(60 * time.Second)
					if own, peers := len(r.segments(x.Q.Connection())[0]), len(r.segments(x.Q.Connection())[1]); own < 50 ||
						peers < 50 {
						t.Errorf("%d and %d segments shown", own, peers)
					}
				})
			}
		}
	}
}

// TestTapOfDatagramsBetweenFamilies: a message of type UD to a port of this urdmad with an address of the other
// family is shown completely, though it does not fit into an IPv6 packet of its own port's MTU.
func TestTapOfDatagramsBetweenFamilies(t *testing.T) {
	const mtu = 4096 + 20 + wire.UDPLen + wire.EncapLen + wire.DatagramLen
	u := enginetest.NewUDPair(t, true, enginetest.Options{MTU: mtu})
	six := netip.MustParseAddr("fd00::1")
	p, _ := enginetest.NewPipes(mtu)
	u.A.Do(func() { u.A.Engine.AddPort(p, netif.Address{Prefix: netip.PrefixFrom(six, 64)}) })
	r := record(t, u.A)
	u.Send(enginetest.To(enginetest.Send(1), six, 1, enginetest.QKey), 4096)
	if f := r.Frames[len(r.Frames)-1]; len(f.Frame) != wire.UDP6HeaderLen+wire.DatagramLen+4096 || f.Peer.Addr() != six {
		t.Errorf("a frame of %d bytes to %v", len(f.Frame), f.Peer)
	}
}

// TestTapOfLocalDatagrams: the synthesized frames of messages of queue pairs of types UD and UC within one engine
// carry the same as those on a wire, in as many packets. Without a capture none are made.
func TestTapOfLocalDatagrams(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, local bool,
		o enginetest.Options) *enginetest.DatagramPair{"UD": enginetest.NewUDPair, "UC": enginetest.NewUCPair} {
		t.Run(name, func(t *testing.T) {
			var carried [2][]string
			for i, local := range []bool{false, true} {
				u := build(t, local, enginetest.Options{})
				r := record(t, u.A)
				say(u, name)
				carried[i] = r.messages(local, u.QA.Q)
				u.A.Do(func() { u.A.Tap.Remove(r.Recorder) })
				before := len(r.Frames)
				say(u, name)
				if len(r.Frames) != before {
					t.Error("shown after the tap was removed")
				}
			}
			if len(carried[0]) < 3 || !slices.Equal(carried[0], carried[1]) {
				t.Errorf("on the wire:\n%s\nmade up:\n%s", strings.Join(carried[0], "\n"), strings.Join(carried[1], "\n"))
			}
		})
	}
}

// say sends messages, the last of which has no receiver.
func say(u *enginetest.DatagramPair, kind string) {
	u.T.Helper()
	send := func(w abi.SQE, from, n int) {
		if kind == "UD" {
			w = enginetest.To(w, u.QB.Client.Host.Addr, u.QB.Q.QPN, enginetest.QKey)
		}
		u.QA.Post(w, u.MA.SGE(from, n))
		if e := u.QA.Send.Completions(1)[0]; e.Status != abi.StatusSuccess {
			u.T.Fatalf("%+v", e)
		}
	}
	u.QB.PostRecv(1, u.MB.SGE(0, 40000))
	u.QB.PostRecv(2, u.MB.SGE(0, 40000))
	imm := enginetest.Send(1)
	imm.Opcode, imm.ImmOrSTag, imm.Flags = abi.WRSendWithImm, 77, imm.Flags|abi.SendSolicited
	send(imm, 0, 0)
	if kind == "UC" {
		send(enginetest.Send(2), 7, 30000)
		send(enginetest.Write(3, u.MB, 40000), 9, 5000)
		bindable := u.QA.Client.Register(64, abi.AccessLocalWrite|abi.AccessMWBind)
		u.QA.Post(enginetest.Bind(5, u.QA.Client.NewWindow(true), bindable, 0, 64, abi.AccessRemoteRead)) // sends nothing
		u.QA.Send.Completions(1)
	} else {
		send(enginetest.Send(2), 7, 1000)
	}
	u.QB.Recv.Completions(2)
	send(enginetest.Send(4), 0, 10)
	u.Pass(time.Second)
}

// messages describes the packets without a connection that from has sent, leaving out random values.
func (r *recorder) messages(local bool, from *qp.QP) (list []string) {
	for _, f := range r.Frames {
		if f.Local != local || !local && !f.Out {
			continue
		}
		if local && (f.Conn == nil || f.Conn.QP != from || f.Other == nil || f.Our.Port() != wire.DatagramPort) {
			r.t.Errorf("whose is %+v?", f.Sight)
		}
		var d wire.Datagram
		var u wire.UC
		b := f.Frame[wire.EthernetLen+28:]
		switch op, _ := wire.PeekOp(b); op {
		case wire.OpDatagram:
			if err := d.Parse(b); err != nil {
				r.t.Fatal(err)
			}
			list = append(list, fmt.Sprint(d.HasImmediate, d.Immediate, d.Solicited, d.QKey, b[wire.DatagramLen:]))
		case wire.OpUC:
			n, err := u.Parse(b)
			if err != nil {
				r.t.Fatal(err)
			}
			list = append(list, fmt.Sprint(u.PSN, u.First, u.Last, u.Write, u.TO, u.HasImmediate, u.Immediate, u.Solicited,
				b[n:]))
		}
	}
	return list
}

// TestOverrunWhileTapped: a local Send that overruns the receiver's completion queue ends both queue pairs while it
// is being carried out. Captures must not access the removed state.
func TestOverrunWhileTapped(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, size := range []int{0, 100, 5000} {
			w := enginetest.New(t, enginetest.Options{Seed: 6})
			record(t, w.A)
			record(t, w.B)
			other := w.B
			if local {
				other = w.A
			}
			ca, cb := w.A.NewClient(), other.NewClient()
			a, b := ca.NewQP(nil), cb.NewQPOn(&enginetest.DefaultCap, cb.NewCQ(64), cb.NewCQ(4))
			enginetest.Join(a, b, 4)
			src, sink := ca.Register(8192, enginetest.ReadWrite), cb.Register(8192, enginetest.ReadWrite)
			for i := range uint64(10) {
				b.PostRecv(i, sink.SGE(0, size))
				a.Post(enginetest.Send(i), src.SGE(0, size))
				a.Post(enginetest.Read(i, sink, 0), src.SGE(0, size))
			}
			w.Pass(20 * time.Millisecond)
			if a.Q.State() != abi.QPSErr || b.Q.State() != abi.QPSErr {
				t.Errorf("%d bytes: states %d and %d, expected error", size, a.Q.State(), b.Q.State())
			}
		}
	})
}

// TestRandomTrafficWhileTapped: a capture of random traffic, refusals and deaths changes none of it.
func TestRandomTrafficWhileTapped(t *testing.T) {
	for seed := range enginetest.Seeds(10) {
		enginetest.Both(t, func(t *testing.T, local bool) {
			w := enginetest.New(t, enginetest.Options{Seed: 4000 + seed})
			record(t, w.A)
			a, b := w.Pair(local, nil)
			w.NewTraffic(a, b, enginetest.Load{Ops: 60, MaxSize: 20000}).Run(60 * time.Second)
			sink := b.Client.Register(4096, abi.AccessLocalWrite) // refuses peers
			src := a.Client.Register(4096, enginetest.ReadWrite)
			a.Post(enginetest.Write(1, sink, 0), src.SGE(0, 4096))
			w.Pass(20 * time.Millisecond)
			if a.Q.State() != abi.QPSErr {
				t.Errorf("state %d after a refusal", a.Q.State())
			}
		})
	}
}

// TestIPv6Capture: synthesized frames of IPv6 connections are IPv6 packets with a checksum, and belong to their
// connection.
func TestIPv6Capture(t *testing.T) {
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 8, Datagrams: true, IPv6: true})
		seen := record(t, w.A)
		a, b := w.Pair(local, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 20, MaxSize: 5000}).Run(60 * time.Second)
		found := 0
		for _, s := range seen.Frames {
			var f wire.Frame
			if err := f.Parse(s.Frame, len(s.Frame)); err != nil || f.Type != wire.EtherTypeIPv6 || f.Proto != wire.ProtoUDP {
				t.Fatalf("local %v: %v, %+v", local, err, f)
			}
			if src, dst := f.Addrs(); src.Addr() != w.A.Addr && dst.Addr() != w.A.Addr {
				t.Errorf("local %v: %v to %v", local, src, dst)
			}
			if !wire.VerifyUDPChecksum(&f, s.Frame[f.PayloadOff-wire.UDPLen:]) {
				t.Errorf("local %v: the checksum is wrong", local)
			}
			if s.Conn != nil && !s.Foreign {
				found++
			}
		}
		if found < 20 {
			t.Errorf("local %v: %d of %d frames belong to a connection", local, found, len(seen.Frames))
		}
	}
}
