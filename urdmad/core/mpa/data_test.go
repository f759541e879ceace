package mpa_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

const rw = abi.AccessLocalWrite | abi.AccessRemoteRead | abi.AccessRemoteWrite

// full is a connection whose peer has not read the engine's data: the send buffer is full, in the middle of
// an FPDU.
func full(w *enginetest.World, m wire.MPA) (p *peer, q *enginetest.QP, src *enginetest.Region, n int) {
	w.T.Helper()
	p, q, _ = connected(w, m, enginetest.Param(4, ""))
	src = q.Client.Register(1<<20, rw)
	wr := abi.SQE{WRID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: 7}
	for range 8 {
		q.Post(wr, src.SGE(0, len(src.Bytes)))
		n += len(src.Bytes)
	}
	w.Pass(10 * time.Millisecond)
	if len(q.Send.Poll()) == 8 {
		w.T.Skip("the kernel takes all of it")
	}
	return p, q, src, n
}

// TestTerminateBehindData: a Terminate is sent completely after FPDUs for which the socket had no room.
func TestTerminateBehindData(t *testing.T) {
	for _, crc := range []bool{false, true} {
		w := world(t, enginetest.Options{})
		m := request()
		m.CRC = crc
		p, _, _, _ := full(w, m)
		bad := make([]byte, wire.TaggedLen+8)
		d := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 12345, TO: 99}
		d.Put(bad)
		p.send(p.fpdu(bad))
		for {
			s := p.segment()
			if wire.IsTerminate(s) {
				break
			}
		}
		if err := p.ended(); err != io.EOF || len(p.in) > 0 {
			t.Errorf("behind the Terminate: %d bytes, then %v", len(p.in), err)
		}
	}
}

// TestTruncatedSource: a client that truncates a file ends only itself when a payload is copied from it, for the
// first payload of a burst and for a later one.
func TestTruncatedSource(t *testing.T) {
	for _, before := range []uint64{0, 1} {
		w := world(t, enginetest.Options{})
		p, q, _ := connected(w, request(), enginetest.Param(4, ""))
		src, file := q.Client.Register(64, rw), q.Client.RegisterFile(4096, rw)
		if err := file.File.Truncate(0); err != nil {
			t.Fatal(err)
		}
		for i := range before {
			q.Post(enginetest.Send(i), src.SGE(0, 64))
		}
		q.Post(enginetest.Send(7), file.SGE(0, 64))
		w.Pass(time.Second)
		if n := len(q.Client.Faults); n != 1 {
			t.Fatalf("the client that truncated was reported %d times", n)
		}
		if err := p.ended(); err != io.EOF {
			t.Errorf("the connection ends with %v", err)
		}
		q.Client.Remove(q)
	}
}

// TestMemoryChangesMeanwhile: a CRC covers the bytes that are sent, though the program changes them before the kernel
// takes them.
func TestMemoryChangesMeanwhile(t *testing.T) {
	w := world(t, enginetest.Options{})
	m := request()
	m.CRC = true
	p, _, src, n := full(w, m)
	for i := range src.Bytes {
		src.Bytes[i] = byte(i)
	}
	for got := 0; got < n; {
		got += len(p.segment()) - wire.TaggedLen // segment checks the CRC
	}
}

// TestTerminateNamesSegment: a long segment that is refused after its first part has arrived is named correctly.
func TestTerminateNamesSegment(t *testing.T) {
	w := world(t, enginetest.Options{})
	p, _, _ := connected(w, request(), enginetest.Param(4, ""))
	bad := make([]byte, wire.TaggedLen+50000)
	d := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 12345, TO: 99}
	d.Put(bad)
	b := p.fpdu(bad)
	p.send(b[:10000])
	s := p.segment()
	var term wire.Terminate
	if at, err := d.Parse(s); err != nil {
		t.Fatal(err)
	} else if _, err = term.Parse(s[at:]); err != nil {
		t.Fatal(err)
	}
	if int(term.SegmentLen) != len(bad) || term.Code != wire.TermTaggedSTag ||
		!bytes.Equal(term.DDPHeader, bad[:wire.TaggedLen]) {
		t.Errorf("%+v", term)
	}
}

// TestCRCs: a damaged FPDU ends the connection before its message completes, whether it arrives whole or in pieces.
func TestCRCs(t *testing.T) {
	for _, n := range []int{10, 3000, 60000} {
		for _, cut := range []int{0, 2, 15, 5000, n + 16} {
			w := world(t, enginetest.Options{})
			m := request()
			m.CRC = true
			p, q, _ := connected(w, m, enginetest.Param(4, ""))
			dst := q.Client.Register(1<<16, rw)
			q.PostRecv(1, dst.SGE(0, 1<<16))
			q.PostRecv(2, dst.SGE(0, 1<<16))
			for i := range 2 {
				s := make([]byte, wire.UntaggedLen+n)
				d := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: wire.MSN(i + 1)}
				d.Put(s)
				b := p.fpdu(s)
				if i == 1 {
					b[len(b)-20] ^= 1
				}
				at := min(cut, len(b))
				p.send(b[:at])
				w.Pass(time.Millisecond)
				p.send(b[at:])
				w.Pass(time.Millisecond)
			}
			var done []abi.CQE
			w.Until("completions", time.Second, func() bool { done = append(done, q.Recv.Poll()...); return len(done) == 2 })
			if done[0].Status != abi.StatusSuccess || done[1].Status != abi.StatusWRFlushErr {
				t.Errorf("%d bytes cut at %d: %+v", n, cut, done)
			}
			s := p.segment()
			var d wire.DDP
			var term wire.Terminate
			at, _ := d.Parse(s)
			if _, err := term.Parse(s[at:]); err != nil || term.Code != wire.TermMPACRC {
				t.Errorf("%d bytes cut at %d: %+v %v", n, cut, term, err)
			}
			if err := p.ended(); err != io.EOF {
				t.Error(err)
			}
		}
	}
}

// TestNoReceiveForLong: a message waits for its receive for longer than a peer may be silent; that does not count as
// silence.
func TestNoReceiveForLong(t *testing.T) {
	w := world(t, enginetest.Options{DeathTimeout: 300 * time.Millisecond, RNRRetry: 7})
	a, b := w.Pair(false, nil)
	src, dst := a.Client.Register(1<<20, rw), b.Client.Register(1<<20, rw)
	for i := range 16 {
		a.Post(enginetest.Send(uint64(i)), src.SGE(0, 1<<20))
	}
	for began := time.Now(); time.Since(began) < 1500*time.Millisecond; {
		w.Pass(10 * time.Millisecond)
	}
	for i := range 16 {
		b.PostRecv(uint64(i), dst.SGE(0, 1<<20))
	}
	got := 0
	w.Until("all messages", time.Minute, func() bool {
		for _, e := range b.Recv.Poll() {
			if e.Status != abi.StatusSuccess {
				t.Fatalf("%+v", e)
			}
			got++
		}
		return got == 16
	})
}

// TestRefusals checks the Terminate for each kind of wrong segment.
func TestRefusals(t *testing.T) {
	untagged := func(d wire.DDP, n int) []byte {
		b := make([]byte, wire.UntaggedLen+n)
		d.Last = true
		d.Put(b)
		return b
	}
	for name, c := range map[string]struct {
		segment func(dst *enginetest.Region) []byte
		code    wire.TermCode
	}{
		"no receive": {func(*enginetest.Region) []byte {
			return untagged(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 2}, 8)
		}, wire.TermUntaggedNoBuffer},
		"no receive for a long one": {func(*enginetest.Region) []byte {
			return untagged(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 2}, 20000)
		}, wire.TermUntaggedNoBuffer},
		"MSN": {func(*enginetest.Region) []byte {
			return untagged(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 7}, 8)
		}, wire.TermUntaggedMSN},
		"offset": {func(*enginetest.Region) []byte {
			return untagged(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 2, MO: 4}, 8)
		}, wire.TermUntaggedMO},
		"answer to nothing": {func(*enginetest.Region) []byte {
			b := make([]byte, wire.TaggedLen+8)
			d := wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 5}
			d.Put(b)
			return b
		}, wire.TermTaggedSTag},
		"behind the region": {func(dst *enginetest.Region) []byte {
			b := make([]byte, wire.TaggedLen+9000)
			d := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(dst.STag), TO: dst.Base() + 1}
			d.Put(b)
			return b
		}, wire.TermTaggedBounds},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			p, q, _ := connected(w, request(), enginetest.Param(4, ""))
			dst := q.Client.Register(9000, rw)
			q.PostRecv(1, dst.SGE(0, 8))
			p.send(p.fpdu(untagged(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}, 8)))
			b := p.fpdu(c.segment(dst))
			p.send(b[:len(b)/2])
			p.send(b[len(b)/2:])
			s := p.segment()
			var d wire.DDP
			var term wire.Terminate
			at, _ := d.Parse(s)
			if _, err := term.Parse(s[at:]); err != nil || term.Code != c.code {
				t.Errorf("%+v, %v; expected %v", term, err, c.code)
			}
			if err := p.ended(); err != io.EOF {
				t.Error(err)
			}
			if c.code == wire.TermUntaggedNoBuffer && w.Now() < 100_000_000 {
				t.Errorf("refused after %v", time.Duration(w.Now()))
			}
		})
	}
}

// TestPlainPeer: no message that RFC 5040 lacks is sent to a peer that is not a urdmad: the work request fails.
func TestPlainPeer(t *testing.T) {
	for what, wr := range map[string]abi.SQE{
		"immediate data": {WRID: 1, Opcode: abi.WRSendWithImm, Flags: abi.SendSignaled},
		"an atomic":      {WRID: 1, Opcode: abi.WRAtomicFetchAndAdd, Flags: abi.SendSignaled, RKey: 7},
	} {
		w := world(t, enginetest.Options{})
		_, q, _ := connected(w, request(), enginetest.Param(4, ""))
		q.Post(wr, q.Client.Register(8, rw).SGE(0, 8))
		enginetest.Expect(t, what, q.Send.Completions(1), []uint64{1}, abi.StatusLocQPOpErr)
	}
}
