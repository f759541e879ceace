package trp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestTerminateWithoutSendQueue: a queue pair without a send queue has no work request that a Terminate could name.
// The Terminate ends its connection all the same.
func TestTerminateWithoutSendQueue(t *testing.T) {
	// Each refuses a segment, and names it by its header, or names none.
	message := func(refused ...byte) []byte {
		d := wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}
		b := make([]byte, wire.UntaggedLen+wire.MaxTerminateLen)
		at := d.Put(b)
		term := wire.Terminate{Code: wire.TermUntaggedTooLong, HasDDPLen: len(refused) > 0, SegmentLen: uint16(len(refused)),
			DDPHeader: refused}
		return b[:at+term.Put(b[at:])]
	}
	header := func(d wire.DDP) []byte {
		b := make([]byte, wire.UntaggedLen)
		return b[:d.Put(b)]
	}
	for _, kind := range silent {
		for name, body := range map[string][]byte{
			"no segment":    message(),
			"Send":          message(header(wire.DDP{Last: true, Op: wire.OpSend, MSN: 1})...),
			"Write":         message(header(wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 1})...),
			"Read Response": message(header(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 1})...),
		} {
			t.Run(kind.name+"/"+name, func(t *testing.T) {
				w := enginetest.New(t, enginetest.Options{Seed: 40})
				s := w.Stranger()
				q := kind.make(w.A.NewClient())
				if n := q.Q.Fill().SendDepth; n != 0 {
					t.Errorf("a send queue of %d slots", n)
				}
				l := s.Dial(q, 4)
				l.Raw(body)
				q.Client.Event(abi.CMDisconnected, time.Second)
				if q.Q.State() != abi.QPSErr {
					t.Errorf("state %d", q.Q.State())
				}
			})
		}
	}
}

// qpKind says how a queue pair is made.
type qpKind struct {
	name string
	make func(*enginetest.Client) *enginetest.QP
}

var plainRC = qpKind{"RC", func(c *enginetest.Client) *enginetest.QP { return c.NewQP(nil) }}

// hostileKinds are the kinds of queue pairs to which strangers send: with all queues, without one, without any.
var hostileKinds = append([]qpKind{plainRC, plainRC, {"XRC_SEND", (*enginetest.Client).NewInitiator}}, silent...)

// silent makes queue pairs without a send queue.
var silent = []qpKind{
	{"RC without a send queue", func(c *enginetest.Client) *enginetest.QP {
		return c.NewQP(&abi.QPCap{MaxRecvWR: 8,
			MaxRecvSGE: 1})
	}},
	{"RC without queues", func(c *enginetest.Client) *enginetest.QP { return c.NewQP(&abi.QPCap{}) }},
	{"XRC_RECV", func(c *enginetest.Client) *enginetest.QP { return c.NewTarget(qp.NewDomain()) }},
}

// TestPacketsThatDontCount: packets from other addresses or ports, or without the cookie, change nothing; fin and
// Terminate only count inside the window.
func TestPacketsThatDontCount(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 41})
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	memory := q.Client.Register(4096, enginetest.ReadWrite)
	l := s.Dial(q, 4)
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
	enginetest.Expect(t, "the right one", q.Recv.Completions(1), []uint64{9}, 0)
	l.Send(wire.OpFin, l.PSN, nil)
	q.Client.Event(abi.CMDisconnected, time.Second)
}

// hostile is a queue pair of host A with outstanding work of every kind, and a stranger at the other end.
type hostile struct {
	w       *enginetest.World
	s       *enginetest.Stranger
	l       *enginetest.Line
	q       *enginetest.QP
	mine    *enginetest.Region
	foreign *enginetest.Region // another client's; must never change
	secret  *enginetest.Region // the client's own, without remote rights
	srqn    uint32             // of type XRC_RECV: a shared receive queue of its domain
}

// newHostile makes one with a queue pair of a kind.
func newHostile(t testing.TB, seed uint64, make func(*enginetest.Client) *enginetest.QP) *hostile {
	w := enginetest.New(t, enginetest.Options{Seed: seed, Window: 64})
	h := &hostile{w: w, s: w.Stranger(), q: make(w.A.NewClient())}
	h.q.Hostile = true
	h.mine, h.secret = h.q.Client.Register(4096, enginetest.ReadWrite), h.q.Client.Register(4096, 0)
	h.foreign = w.A.NewClient().Register(4096, enginetest.ReadWrite)
	for i := range h.foreign.Bytes {
		h.foreign.Bytes[i], h.secret.Bytes[i] = 0x5e, 0x5e
	}
	h.l = h.s.Dial(h.q, 4)
	h.post()
	w.Pass(100 * time.Microsecond)
	return h
}

// post posts work to the existing queues.
func (h *hostile) post() {
	if domain := h.q.Q.Domain; domain != nil {
		srq := h.q.Client.NewNamed(domain, 8, h.q.Client.NewCQ(64))
		for i := range uint64(8) {
			srq.Post(i, h.mine.SGE(0, 2000))
		}
		h.srqn = srq.Q.Shared().Number
		return
	}
	for i := range uint64(min(h.q.Layout.Cap.MaxRecvWR, 8)) {
		h.q.PostRecv(i, h.mine.SGE(0, 2000))
	}
	if h.q.Layout.Cap.MaxSendWR == 0 {
		return
	}
	remote := &enginetest.Region{Region: h.mine.Region}
	for i := range uint64(3) {
		h.q.Post(enginetest.Read(i, remote, 0), h.mine.SGE(2000, 1000))
		h.q.Post(enginetest.Send(10+i), h.mine.SGE(0, 3000))
	}
}

// leave lets the queue pair's program change its state, destroy it or do nothing.
func (h *hostile) leave(r *rand.Rand) {
	states := []uint32{abi.QPSSQD, abi.QPSErr, abi.QPSReset}
	switch n := r.IntN(6); {
	case n < len(states):
		h.w.A.Do(func() { _ = h.q.Q.Modify(abi.QPMaskState, &abi.QPAttr{QPState: states[n]}) }) // it may be in ERR already
	case n == 3:
		h.q.Destroy()
	}
}

// frame makes a valid frame of the connection, apart from the changes in r.
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
		b[40], b[41] = 0, 0 // so that the UDP checksum does not detect the change
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
	stags := []wire.STag{wire.STag(h.mine.STag), wire.STag(h.foreign.STag), wire.STag(h.secret.STag),
		wire.STag(r.Uint32()), wire.STag(h.q.Q.QPN<<8) ^ wire.STag(r.IntN(8)), wire.STag(h.srqn)}
	tos := []uint64{h.mine.Base(), h.foreign.Base(), h.secret.Base(), 0, ^uint64(0) - uint64(r.IntN(100)),
		h.mine.Base() + 4090}
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

// check makes sure that no foreign memory was changed, and no secret sent.
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

// TestHostilePackets: packets of a connection have any contents, while its queue pair, of any kind, is in any state.
// There must be no panic and no access to others' memory, and the engine must continue.
func TestHostilePackets(t *testing.T) {
	for seed := uint64(1); seed <= enginetest.Seeds(300); seed++ {
		kind := hostileKinds[seed%uint64(len(hostileKinds))]
		t.Run(fmt.Sprintf("%d %s", seed, kind.name), func(t *testing.T) {
			h := newHostile(t, seed, kind.make)
			leaves := h.w.Rand.IntN(40)
			for i := range 40 {
				if i == leaves {
					h.leave(h.w.Rand)
				}
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
	h := newHostile(f, 1, plainRC.make)
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := h.frame(r)
		if len(b) < 256 {
			f.Add(append([]byte{byte(len(b))}, b...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHostile(t, 1, plainRC.make)
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
