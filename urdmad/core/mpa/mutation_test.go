package mpa_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// mutationStride makes a short test try only each nth mutation: a prime number, so that each kind has its turn.
const mutationStride = 101

// mutated is a program whose peer sends segments of every kind, one of them changed.
type mutated struct {
	*fuzzed
	hidden *enginetest.Region // of the program itself, without rights for the peer
	tried  uint64
}

func newMutated(t *testing.T) *mutated {
	z := newFuzzed(t)
	m := &mutated{fuzzed: z, hidden: z.c.Register(1<<16, 0)}
	for i := range m.hidden.Bytes {
		m.hidden.Bytes[i] = 0x5e
	}
	return m
}

// segments returns segments that are right, in this order, for a queue pair that has posted three receives and, as
// its first work request, a Read of 5,000 bytes, whose request named sink.
func (m *mutated) segments(sink wire.STag) (list [][]byte) {
	add := func(d wire.DDP, body []byte) {
		b := make([]byte, wire.UntaggedLen, wire.UntaggedLen+len(body))
		list = append(list, append(b[:d.Put(b)], body...))
	}
	at := func(off int) wire.DDP {
		return wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(m.mine.STag),
			TO: m.mine.Base() + uint64(off)}
	}
	send := func(op wire.Opcode, msn wire.MSN, mo uint32, last bool) wire.DDP {
		return wire.DDP{Last: last, Op: op, QN: wire.QueueSend, MSN: msn, MO: mo}
	}
	add(at(30000), make([]byte, 100))
	add(at(31000), make([]byte, 6000))
	add(send(wire.OpSend, 1, 0, false), make([]byte, 5000))
	add(send(wire.OpSend, 1, 5000, true), make([]byte, 10))
	body := make([]byte, wire.ReadRequestLen)
	read := wire.ReadRequest{SinkSTag: 7, SinkTO: 9, Length: 3000, SrcSTag: wire.STag(m.mine.STag), SrcTO: m.mine.Base()}
	read.Put(body)
	add(wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 1}, body)
	add(wire.DDP{Tagged: true, Op: wire.OpReadResponse, STag: sink}, make([]byte, 4500))
	add(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: sink, TO: 4500}, make([]byte, 500))
	body = make([]byte, wire.AtomicRequestLen)
	atomic := wire.AtomicRequest{Opcode: wire.AtomicFetchAdd, RequestID: 5, STag: wire.STag(m.mine.STag),
		TO: m.mine.Base() + 40000, Data: 1}
	atomic.Put(body)
	add(wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: wire.QueueReadRequest, MSN: 2}, body)
	add(send(wire.OpImmediate, 2, 0, true), make([]byte, wire.ImmediateLen))
	add(send(wire.OpSendSE, 3, 0, true), make([]byte, 8))
	add(wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}, make([]byte, 30))
	return list
}

// mutations are the possible changes to segment i; each returns the FPDUs of all segments.
func (m *mutated) mutations(segments [][]byte, i int) (list []func(p *peer) []byte) {
	stream := func(p *peer, all [][]byte) (b []byte) {
		for _, s := range all {
			b = append(b, p.fpdu(s)...)
		}
		return b
	}
	change := func(do func(b []byte) []byte) {
		changed := do(slices.Clone(segments[i]))
		for _, all := range [][][]byte{ // instead of it, before it, after it
			slices.Concat(segments[:i], [][]byte{changed}, segments[i+1:]),
			slices.Concat(segments[:i], [][]byte{changed}, segments[i:]),
			slices.Concat(segments[:i+1], [][]byte{changed}, segments[i+1:]),
		} {
			list = append(list, func(p *peer) []byte { return stream(p, all) })
		}
	}
	change(func(b []byte) []byte { return b })
	for at := range 2 { // control bits and versions; opcodes and versions
		for v := range 256 {
			if at == 1 || v&0x3f == 1 || v&0xc0 == int(segments[i][0]&0xc0) && v&(v-1) == 0 {
				change(func(b []byte) []byte { b[at] = byte(v); return b })
			}
		}
	}
	for at := 2; at+4 <= min(len(segments[i]), wire.UntaggedLen+wire.AtomicRequestLen); at += 4 {
		was := binary.BigEndian.Uint32(segments[i][at:])
		for _, v := range []uint32{0, 1, was + 1, was - 1, was + 1<<16, 1 << 31, math.MaxUint32, math.MaxUint32 - 7,
			uint32(m.forbidden.STag), uint32(m.hidden.STag)} {
			change(func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b })
		}
	}
	for _, n := range []int{0, 1, 2, 13, 14, 17, 18, 19, len(segments[i]) / 2, len(segments[i]) - 1} {
		change(func(b []byte) []byte { return b[:min(n, len(b))] })
	}
	for _, n := range []int{1, 4, 4096, 65535 - len(segments[i])} {
		change(func(b []byte) []byte { return append(b, make([]byte, n)...) })
	}
	begin := func(p *peer) int { return len(stream(p, segments[:i])) }
	for _, by := range []int{1, -1, 4, 1 << 15} { // the FPDU's length
		list = append(list, func(p *peer) []byte {
			b := stream(p, segments)
			at := begin(p)
			binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])+uint16(by))
			return b
		})
	}
	list = append(list,
		func(p *peer) []byte { // its CRC
			b := stream(p, segments)
			b[begin(p)+wire.FPDULen(len(segments[i]))-1] ^= 1
			return b
		},
		// the end of the stream
		func(p *peer) []byte { b := stream(p, segments); return b[:begin(p)+wire.FPDULen(len(segments[i]))/2] },
		func(p *peer) []byte { // the order
			return stream(p, slices.Concat(segments[:i], segments[i+1:], segments[i:i+1]))
		})
	return list
}

// run sends a stream from a peer, and leaves.
func (m *mutated) run(t *testing.T, crc bool, i, k int) {
	m.w.T = t
	p, q := dial(m.w), m.qp()
	p.crc = crc
	m.tried += 16
	for n := range uint64(3) {
		q.PostRecv(m.tried+n, m.mine.SGE(0, 1000), m.mine.SGE(1000, 20000))
	}
	ask := request()
	ask.CRC = crc
	m.child = m.c.Accept(p.requested(m.c, ask), q, enginetest.Param(4, ""))
	q.Post(abi.SQE{WRID: m.tried, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, RKey: 7}, m.mine.SGE(50000, 5000))
	p.reply(true)
	var d wire.DDP
	var read wire.ReadRequest
	first := make([]byte, wire.TaggedLen) // nothing is sent before it
	(&wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite}).Put(first)
	_ = p.conn.SetWriteDeadline(time.Time{})
	if _, err := p.conn.Write(p.fpdu(first)); err != nil {
		t.Fatal(err)
	}
	s := p.segment()
	at, err := d.Parse(s)
	if err == nil {
		_, err = read.Parse(s[at:])
	}
	if err != nil || d.Op != wire.OpReadRequest {
		t.Fatalf("%v %v, expected a request for a Read", d.Op, err)
	}
	segments := m.segments(read.SinkSTag)
	b := m.mutations(segments, i)[k](p)
	for piece := max(1000, len(b)/7); len(b) > 0; b = b[min(piece, len(b)):] {
		_ = p.conn.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := p.conn.Write(b[:min(piece, len(b))]); err != nil {
			break // the engine has ended it
		}
		m.turns()
	}
	p.read()
	p.reset()
	m.w.Until("the end", time.Minute, func() bool { return q.Q.State() == abi.QPSErr })
	seen := map[uint64]int{}
	for _, e := range append(m.send.Poll(), m.recv.Poll()...) {
		seen[e.WRID]++
	}
	if q.Q.State() != abi.QPSErr || seen[m.tried] != 2 || seen[m.tried+1] != 1 || seen[m.tried+2] != 1 || len(seen) != 3 {
		t.Errorf("state %d, completions %v from %d on: expected all four", q.Q.State(), seen, m.tried)
	}
	m.leaves(t, p, q)
	secret := bytes.Repeat([]byte{0x5e}, 1<<16)
	if bytes.Contains(p.in, secret[:8]) || bytes.Contains(m.mine.Bytes, secret[:8]) ||
		!bytes.Equal(m.forbidden.Bytes, secret) || !bytes.Equal(m.hidden.Bytes, secret) {
		t.Error("memory that the peer has no right to was read, or written")
	}
}

// TestMutations: a peer sends segments of every kind; in one, or in an additional copy of one, one field is changed.
// The peer must reach no memory without rights, every work request must complete once, and nothing may be left of the
// connection.
func TestMutations(t *testing.T) {
	m := newMutated(t)
	segments := m.segments(1)
	tries := 0
	for i := range segments {
		for k := range m.mutations(segments, i) {
			if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d/%d", i, k), func(t *testing.T) { m.run(t, tries%2 == 0, i, k) })
			if t.Failed() {
				return
			}
		}
	}
}
