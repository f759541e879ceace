package rdmap_test

import (
	"bytes"
	"slices"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestTerminateCodes: segments that no urdmad sends get the codes of RFC 5040 section 4.8 and RFC 5041 section 8,
// with the refused headers, and nothing is placed.
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
		{"unasked Read Response", wire.TermTaggedSTag,
			segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 7}, 1)},
		{"Read Request too long", wire.TermUntaggedTooLong, readRequest(10, 1)},
		{"Read without agreed IRD", wire.TermUntaggedNoBuffer, readRequest(10)},
		{"immediate data too long", wire.TermUntaggedTooLong, segment(immediate, make([]byte, 9)...)},
		{"immediate data too short", wire.TermOperationStream, segment(immediate, make([]byte, 7)...)},
		{"immediate data MSN ahead", wire.TermUntaggedMSN,
			segment(wire.DDP{Last: true, Op: wire.OpImmediate, MSN: 2}, make([]byte, 8)...)},
		{"immediate data MO", wire.TermUntaggedMO,
			segment(wire.DDP{Last: true, Op: wire.OpImmediate, MSN: 1, MO: 8}, make([]byte, 8)...)},
		{"immediate data not last", wire.TermUntaggedTooLong,
			segment(wire.DDP{Op: wire.OpImmediate, MSN: 1}, make([]byte, 8)...)},
		{"atomic without agreed IRD", wire.TermUntaggedNoBuffer, segment(atomic, make([]byte, 52)...)},
		{"atomic opcode 3", wire.TermOperationOpcode, segment(atomic, append([]byte{0, 0, 0, 3}, make([]byte, 48)...)...)},
		{"atomic too short", wire.TermOperationStream, segment(atomic, make([]byte, 51)...)},
		{"atomic too long", wire.TermUntaggedTooLong, segment(atomic, make([]byte, 53)...)},
		{"atomic MSN ahead", wire.TermUntaggedMSN,
			segment(wire.DDP{Last: true, Op: wire.OpAtomicRequest, QN: 1, MSN: 2}, make([]byte, 52)...)},
		{"unasked Atomic Response", wire.TermOperationStream,
			segment(wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: 3, MSN: 1}, make([]byte, 12)...)},
		{"Atomic Response MSN ahead", wire.TermUntaggedMSN,
			segment(wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: 3, MSN: 2}, make([]byte, 12)...)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 40})
			s := w.Stranger()
			q := w.A.NewClient().NewQP(nil)
			memory := q.Client.Register(4096, enginetest.ReadWrite)
			l := s.Dial(q, 0)
			q.PostRecv(9, memory.SGE(0, 4096))
			c.do(l, wire.STag(memory.STag))
			term := l.Terminate()
			if term.Code != c.code {
				t.Errorf("Terminate says %v, expected %v", term.Code, c.code)
			}
			q.Recv.Completions(1)
			if q.Q.State() != abi.QPSErr {
				t.Errorf("state %d", q.Q.State())
			}
			if !bytes.Equal(memory.Bytes, make([]byte, 4096)) {
				t.Error("something was placed")
			}
		})
	}
}

// TestTerminateNamesRead: a refused Read is recognized by its request. siw puts the message's length in place of the
// MSN.
func TestTerminateNamesRead(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 40})
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	memory := q.Client.Register(4096, enginetest.ReadWrite)
	l := s.Dial(q, 4)
	const size = 3
	for i := range uint64(3) {
		q.Post(abi.SQE{WRID: i, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, RKey: 7, RemoteAddr: 100 * i},
			memory.SGE(0, size))
	}
	var request []byte
	for i := range wire.MSN(3) {
		s.Await("Read Request", func(d *enginetest.Datagram) bool {
			body := l.Body(d)
			var h wire.DDP
			at, err := h.Parse(body)
			if err != nil || h.Op != wire.OpReadRequest || h.MSN != i+1 {
				return false
			}
			if i == 0 {
				request = bytes.Clone(body[at:])
			}
			return true
		})
	}
	header := make([]byte, wire.UntaggedLen)
	refused := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: size}
	refused.Put(header)
	term := wire.Terminate{Code: wire.TermProtectionBounds, HasDDPLen: true, DDPHeader: header, ReadRequest: request}
	body := make([]byte, wire.MaxTerminateLen)
	l.Segment(wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}, body[:term.Put(body)]...)
	want := []uint32{abi.StatusRemAccessErr, abi.StatusWRFlushErr, abi.StatusWRFlushErr}
	if got := q.Send.Statuses(0, 3); !slices.Equal(got, want) {
		t.Errorf("statuses %v, expected %v", got, want)
	}
}
