package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestTerminateCodes: segments that no urdmad sends get the codes of RFC 5040
// section 4.8 and RFC 5041 section 8, with the refused headers, and place
// nothing.
func TestTerminateCodes(t *testing.T) {
	send := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}
	immediate := wire.DDP{Last: true, Op: wire.OpImmediate, QN: wire.QueueSend, MSN: 1}
	atomic := wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: wire.QueueReadRequest, MSN: 1}
	with := func(change func(*wire.DDP)) wire.DDP { d := send; change(&d); return d }
	readRequest := func(length uint32, extra ...byte) func(l *enginetest.Line, stag wire.STag) {
		return func(l *enginetest.Line, stag wire.STag) {
			b := make([]byte, wire.ReadRequestLen)
			r := wire.ReadRequest{SinkSTag: 1, Length: length, SrcSTag: stag, SrcTO: 0x7f0000000000}
			r.Put(b)
			d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 1}
			l.Segment(d, append(b, extra...)...)
		}
	}
	segment := func(d wire.DDP, data ...byte) func(l *enginetest.Line, stag wire.STag) {
		return func(l *enginetest.Line, stag wire.STag) { l.Segment(d, data...) }
	}
	raw := func(b ...byte) func(l *enginetest.Line, stag wire.STag) {
		return func(l *enginetest.Line, stag wire.STag) { l.Raw(b) }
	}
	zeros := make([]byte, 16)
	cases := []struct {
		name string
		code wire.TermCode
		do   func(l *enginetest.Line, stag wire.STag)
	}{
		{"MSN ahead", wire.TermUntaggedMSN, segment(with(func(d *wire.DDP) { d.MSN = 2 }), 1, 2, 3)},
		{"MSN behind", wire.TermUntaggedMSN, segment(with(func(d *wire.DDP) { d.MSN = 0 }), 1, 2, 3)},
		{"MO of a first segment", wire.TermUntaggedMO, segment(with(func(d *wire.DDP) { d.MO = 1 }), 1, 2, 3)},
		{"queue 3", wire.TermUntaggedQN, segment(with(func(d *wire.DDP) { d.QN = 9 }), 1, 2, 3)},
		{"DDP version untagged", wire.TermUntaggedVersion, raw(append([]byte{0x42, 0x43}, zeros...)...)},
		{"DDP version tagged", wire.TermTaggedVersion, raw(append([]byte{0xc2, 0x40}, zeros...)...)},
		{"RDMAP version", wire.TermOperationVersion, raw(append([]byte{0x41, 0x83}, zeros...)...)},
		{"opcode 15", wire.TermOperationOpcode, raw(append([]byte{0x41, 0x4f}, zeros...)...)},
		{"tagged Send", wire.TermOperationOpcode, raw(append([]byte{0xc1, 0x43}, zeros...)...)},
		{"unasked Read Response", wire.TermTaggedSTag, segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 7}, 1)},
		{"Read Request too long", wire.TermUntaggedTooLong, readRequest(10, 1)},
		{"Read without agreed IRD", wire.TermUntaggedNoBuffer, readRequest(10)},
		{"immediate data too long", wire.TermUntaggedTooLong, segment(immediate, make([]byte, 9)...)},
		{"immediate data too short", wire.TermOperationStream, segment(immediate, make([]byte, 7)...)},
		{"immediate data MSN ahead", wire.TermUntaggedMSN, segment(wire.DDP{Last: true, Op: wire.OpImmediate, MSN: 2}, make([]byte, 8)...)},
		{"immediate data MO", wire.TermUntaggedMO, segment(wire.DDP{Last: true, Op: wire.OpImmediate, MSN: 1, MO: 8}, make([]byte, 8)...)},
		{"immediate data not last", wire.TermUntaggedTooLong, segment(wire.DDP{Op: wire.OpImmediate, MSN: 1}, make([]byte, 8)...)},
		{"atomic without agreed IRD", wire.TermUntaggedNoBuffer, segment(atomic, make([]byte, 52)...)},
		{"atomic opcode 3", wire.TermOperationOpcode, segment(atomic, append([]byte{0, 0, 0, 3}, make([]byte, 48)...)...)},
		{"atomic too short", wire.TermOperationStream, segment(atomic, make([]byte, 51)...)},
		{"atomic too long", wire.TermUntaggedTooLong, segment(atomic, make([]byte, 53)...)},
		{"atomic MSN ahead", wire.TermUntaggedMSN, segment(wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: 1, MSN: 2}, make([]byte, 52)...)},
		{"unasked Atomic Response", wire.TermOperationStream, segment(wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: 3, MSN: 1}, make([]byte, 12)...)},
		{"Atomic Response MSN ahead", wire.TermUntaggedMSN, segment(wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: 3, MSN: 2}, make([]byte, 12)...)},
	}
	for _, c := range cases {
		for _, extended := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/extended %v", c.name, extended), func(t *testing.T) {
				w := enginetest.New(t, enginetest.Options{Seed: 40})
				s := w.Stranger()
				q := w.A.NewClient().NewQP(nil)
				memory := q.Client.Register(4096, rw)
				l := s.Dial(q, 0, extended)
				q.PostRecv(9, memory.SGE(0, 4096))
				c.do(l, wire.STag(memory.STag))
				term := l.Terminate()
				if term.Code != c.code {
					t.Errorf("Terminate says %v, expected %v", term.Code, c.code)
				}
				completions(w, q.Recv, 1)
				if q.Q.State() != abi.QPSErr {
					t.Errorf("state %d", q.Q.State())
				}
				if !bytes.Equal(memory.Bytes, make([]byte, 4096)) {
					t.Error("something was placed")
				}
			})
		}
	}
}

// TestPacketsThatDontCount: packets from other addresses, ports or without the
// cookie change nothing; fin and Terminate only inside the window.
func TestPacketsThatDontCount(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 41})
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	memory := q.Client.Register(4096, rw)
	l := s.Dial(q, 4, true)
	q.PostRecv(9, memory.SGE(0, 4096))
	b := make([]byte, 100)
	d := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}
	d.Put(b)
	forged := *l
	forged.Cookie++
	forged.Send(wire.OpData, l.PSN, b)
	forged.Send(wire.OpFin, l.PSN, nil)
	otherPort := *l
	otherPort.Ours++
	otherPort.Send(wire.OpData, l.PSN, b)
	otherPort.Send(wire.OpFin, l.PSN, nil)
	otherIP := *s
	otherIP.IP[3] = 77
	other := *l
	other.S = &otherIP
	other.Send(wire.OpFin, l.PSN, nil)
	wrongAck := *l
	wrongAck.Ack = l.Ack.Add(5000)
	wrongAck.Send(wire.OpData, l.PSN, b)
	wrongAck.Send(wire.OpFin, l.PSN, nil)
	for _, off := range []uint32{1 << 31, 5000, 0xffffff00} {
		l.Send(wire.OpFin, l.PSN.Add(off), nil)
		l.Send(wire.OpData, l.PSN.Add(off), b)
		term := append([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, 0x11, 0, 0, 0)
		l.Send(wire.OpData, l.PSN.Add(off), term)
	}
	w.Pass(time.Second)
	if q.Q.State() != abi.QPSRTS || len(q.Recv.Poll()) != 0 {
		t.Fatalf("state %d: a packet that doesn't count did", q.Q.State())
	}
	l.Raw(b)
	expect(t, "the right one", completions(w, q.Recv, 1), []uint64{9}, 0)
	l.Send(wire.OpFin, l.PSN, nil)
	q.Client.Event(abi.CMDisconnected, time.Second)
}

// TestARPAndEcho: host A answers ARP requests and echo requests for its address
// and ignores the rest.
func TestARPAndEcho(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 42})
	s := w.Stranger()
	mac := wire.MAC(w.A.Port.Info().MAC)
	ask := func(target wire.IPv4) {
		b := make([]byte, 64)
		at := wire.PutEthernet(b, wire.MAC{255, 255, 255, 255, 255, 255}, s.MAC, wire.EtherTypeARP)
		r := wire.ARP{Op: wire.ARPRequest, SenderMAC: s.MAC, SenderIP: s.IP, TargetIP: target}
		s.SendFrame(b[:at+r.Put(b[at:])])
		w.Pass(time.Millisecond)
		s.Receive()
	}
	ask(w.A.IP)
	if len(s.Frames) != 1 {
		t.Fatalf("%d answers to an ARP request", len(s.Frames))
	}
	var a wire.ARP
	if _, err := a.Parse(s.Frames[0][14:]); err != nil || a.Op != wire.ARPReply || a.SenderMAC != mac || a.SenderIP != w.A.IP {
		t.Errorf("ARP answer %+v: %v", a, err)
	}
	s.Frames = nil
	ask(wire.IPv4{10, 0, 0, 9})
	if len(s.Frames) != 0 {
		t.Error("answered for another address")
	}
	echo := make([]byte, 14+20+8+56)
	wire.PutEthernet(echo, mac, s.MAC, wire.EtherTypeIPv4)
	ip := echo[14:]
	copy(ip, []byte{0x45, 0, 0, byte(len(ip)), 0, 1, 0, 0, 64, 1, 0, 0, s.IP[0], s.IP[1], s.IP[2], s.IP[3], w.A.IP[0], w.A.IP[1], w.A.IP[2], w.A.IP[3]})
	ip[20], ip[24], ip[27] = 8, 0x12, 3
	for i := range ip[28:] {
		ip[28+i] = byte(i)
	}
	sum := ^wire.Fold(wire.Checksum(0, ip[:20]))
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	if !wire.VerifyIPv4Checksum(ip[:20]) {
		ip[10], ip[11] = byte(sum), byte(sum>>8)
	}
	sum = ^wire.Fold(wire.Checksum(0, ip[20:]))
	ip[22], ip[23] = byte(sum>>8), byte(sum)
	if wire.Fold(wire.Checksum(0, ip[20:])) != 0xffff {
		ip[22], ip[23] = byte(sum), byte(sum>>8)
	}
	s.SendFrame(echo)
	w.Pass(time.Millisecond)
	s.Receive()
	if len(s.Frames) != 1 {
		t.Fatalf("%d answers to an echo request", len(s.Frames))
	}
	r := s.Frames[0]
	if r[34] != 0 || !bytes.Equal(r[38:], echo[38:]) || !bytes.Equal(r[30:34], s.IP[:]) || wire.Fold(wire.Checksum(0, r[34:])) != 0xffff {
		t.Errorf("echo reply % x", r)
	}
}

// hostile is a queue pair of host A with work of every kind under way and a
// stranger at the other end.
type hostile struct {
	w       *enginetest.World
	s       *enginetest.Stranger
	l       *enginetest.Line
	q       *enginetest.QP
	mine    *enginetest.Region
	foreign *enginetest.Region // another client's; must never change
	secret  *enginetest.Region // the client's own, without remote rights
}

func newHostile(t testing.TB, seed uint64) *hostile {
	w := enginetest.New(t, enginetest.Options{Seed: seed, Window: 64})
	h := &hostile{w: w, s: w.Stranger(), q: w.A.NewClient().NewQP(nil)}
	h.mine, h.secret = h.q.Client.Register(4096, rw), h.q.Client.Register(4096, 0)
	h.foreign = w.A.NewClient().Register(4096, rw)
	for i := range h.foreign.Bytes {
		h.foreign.Bytes[i], h.secret.Bytes[i] = 0x5e, 0x5e
	}
	h.l = h.s.Dial(h.q, 4, true)
	for i := range uint64(8) {
		h.q.PostRecv(i, h.mine.SGE(0, 2000))
	}
	remote := &enginetest.Region{Region: h.mine.Region}
	for i := range uint64(3) {
		h.q.Post(enginetest.Read(i, remote, 0), h.mine.SGE(2000, 1000))
		h.q.Post(enginetest.Send(10+i), h.mine.SGE(0, 3000))
	}
	w.Pass(100 * time.Microsecond)
	return h
}

// frame makes a frame of the connection that is right but for what r changes.
func (h *hostile) frame(r *rand.Rand) []byte {
	l, psn := h.l, h.l.PSN.Add(uint32(r.IntN(4)))
	if r.IntN(2) == 0 {
		psn = h.l.PSN
		h.l.PSN = psn.Add(1)
	}
	body := h.segment(r)
	op := wire.OpData
	if r.IntN(6) == 0 {
		op = wire.TRPOp(r.IntN(7))
	}
	l.Ack = l.Ack.Add(uint32(r.IntN(3) * r.IntN(3)))
	b := l.S.Datagram(l.Ours, l.Theirs, l.Packet(op, psn, body))
	for range r.IntN(3) * r.IntN(3) {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		b[40], b[41] = 0, 0 // the UDP checksum shall not find it
	}
	if r.IntN(20) == 0 {
		b = b[:r.IntN(len(b)+1)]
	}
	return b
}

func (h *hostile) segment(r *rand.Rand) []byte {
	b := make([]byte, 18+28+r.IntN(100)*r.IntN(14))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	stags := []wire.STag{wire.STag(h.mine.STag), wire.STag(h.foreign.STag), wire.STag(h.secret.STag), wire.STag(r.Uint32()), wire.STag(h.q.Q.QPN<<8) ^ wire.STag(r.IntN(8))}
	tos := []uint64{h.mine.Base(), h.foreign.Base(), h.secret.Base(), 0, ^uint64(0) - uint64(r.IntN(100)), h.mine.Base() + 4090}
	stag, to := stags[r.IntN(len(stags))], tos[r.IntN(len(tos))]
	d := wire.DDP{Last: r.IntN(2) == 0, Op: wire.Opcode(r.IntN(16)), STag: stag, TO: to, QN: uint32(r.IntN(4)),
		MSN: wire.MSN(r.IntN(4)), MO: uint32(r.IntN(2) * r.IntN(3000)), Tagged: r.IntN(2) == 0}
	at := d.Put(b)
	if r.IntN(3) == 0 && len(b) >= at+wire.ReadRequestLen {
		q := wire.ReadRequest{SinkSTag: wire.STag(r.Uint32()), Length: r.Uint32() >> r.IntN(32), SrcSTag: stag, SrcTO: to}
		q.Put(b[at:])
		b = b[:at+wire.ReadRequestLen]
	}
	return b
}

// check makes sure that nothing leaked in or out.
func (h *hostile) check(t testing.TB) {
	t.Helper()
	h.s.Receive()
	for i := range h.foreign.Bytes {
		if h.foreign.Bytes[i] != 0x5e || h.secret.Bytes[i] != 0x5e {
			t.Fatalf("byte %d of memory that the stranger has no right to was written", i)
		}
	}
	for _, d := range h.s.Got {
		if bytes.Contains(d.Payload, bytes.Repeat([]byte{0x5e}, 64)) {
			t.Fatal("memory that the stranger has no right to was sent")
		}
	}
	h.s.Got, h.s.Frames = nil, nil
}

// TestHostilePackets: packets of a connection with anything in them: no panic,
// nobody else's memory, and the engine goes on.
func TestHostilePackets(t *testing.T) {
	for seed := uint64(1); seed <= seeds(300); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHostile(t, seed)
			for range 40 {
				h.s.SendFrame(h.frame(h.w.Rand))
				if h.w.Rand.IntN(3) == 0 {
					h.w.Step()
				}
			}
			h.w.Pass(time.Duration(1+h.w.Rand.IntN(200)) * time.Millisecond)
			h.check(t)
		})
	}
}

// FuzzFrames takes any frames; the first byte of each record is its length.
func FuzzFrames(f *testing.F) {
	h := newHostile(f, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := h.frame(r)
		if len(b) < 256 {
			f.Add(append([]byte{byte(len(b))}, b...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHostile(t, 1)
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			h.s.SendFrame(data[1 : 1+n])
			data = data[1+n:]
			h.w.Step()
		}
		h.w.Pass(100 * time.Microsecond)
		h.check(t)
	})
}
