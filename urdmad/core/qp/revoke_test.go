package qp_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Deregistration, invalidation and a queue pair in error take memory back at
// once: from then on no byte of it moves, in or out, whatever was under way.

// TestDeregisterEndsReadsUnderWay: the peer asks for a long Read, holds its
// window shut, and opens it after the program has taken the buffer back.
func TestDeregisterEndsReadsUnderWay(t *testing.T) {
	for _, how := range []string{"deregister", "error", "destroy"} {
		t.Run(how, func(t *testing.T) {
			const length = 100_000
			w := enginetest.New(t, enginetest.Options{Seed: 70})
			s := w.Stranger()
			q := w.A.NewClient().NewQP(nil)
			memory := q.Client.Register(length, enginetest.ReadWrite)
			l := s.Dial(q, 4)
			body := make([]byte, wire.ReadRequestLen)
			r := wire.ReadRequest{SinkSTag: 1, Length: length, SrcSTag: wire.STag(memory.STag), SrcTO: memory.Base()}
			r.Put(body)
			l.Segment(wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 1}, body...)
			w.Pass(time.Millisecond) // as much as the stranger's 64 credits allow is out
			switch how {
			case "deregister":
				memory.Deregister()
			case "error":
				if err := q.Modify(abi.QPSErr); err != nil {
					t.Fatal(err)
				}
			case "destroy":
				q.Destroy()
			}
			copy(memory.Bytes, bytes.Repeat([]byte("later"), length/5))
			s.Receive()
			before := len(s.Got)
			for range 50 {
				l.Ack = lastPSN(s, l).Add(1)
				l.Send(wire.OpData, l.PSN, nil)
				w.Pass(10 * time.Millisecond)
				s.Receive()
			}
			for i := range s.Got[before:] {
				if bytes.Contains(s.Got[before+i].Payload, []byte("laterlater")) {
					t.Fatalf("bytes written after %s left in a packet", how)
				}
			}
			if how == "deregister" && q.Q.State() != abi.QPSErr {
				t.Errorf("state %d: a Read without its memory can't be answered", q.Q.State())
			}
		})
	}
}

// lastPSN is the newest segment that the stranger has got.
func lastPSN(s *enginetest.Stranger, l *enginetest.Line) wire.PSN {
	last := l.Ack.Add(^uint32(0))
	for i := range s.Got {
		var h wire.TRP
		at, err := h.Parse(s.Got[i].Payload)
		if err == nil && h.Op == wire.OpData && len(s.Got[i].Payload) > at && h.PSN.After(last) {
			last = h.PSN
		}
	}
	return last
}

// TestDeregisterEndsScattering: memory of a receive that a long message is
// filling, and of a Read whose answer is arriving, is the client's again.
func TestDeregisterEndsScattering(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, read := range []bool{false, true} {
			const length = 8 << 20
			w := enginetest.New(t, enginetest.Options{Seed: 71})
			a, b := w.Pair(local, nil)
			src, sink := a.Client.Register(length, enginetest.ReadWrite), b.Client.Register(length, enginetest.ReadWrite)
			for i := range src.Bytes {
				src.Bytes[i] = 0xff
			}
			if read {
				b.Post(enginetest.Read(1, src, 0), sink.SGE(0, length))
			} else {
				b.PostRecv(1, sink.SGE(0, length))
				a.Post(enginetest.Send(2), src.SGE(0, length))
			}
			w.Until("the first bytes", time.Second, func() bool { w.Step(); return sink.Bytes[0] != 0 })
			sink.Deregister()
			moved := bytes.Count(sink.Bytes, []byte{0xff})
			if moved == length {
				t.Fatal("all of it had moved before")
			}
			w.Pass(time.Second)
			if n := bytes.Count(sink.Bytes, []byte{0xff}); n != moved {
				t.Errorf("read %v: %d bytes written after deregistration", read, n-moved)
			}
			if b.Q.State() != abi.QPSErr {
				t.Errorf("read %v: state %d", read, b.Q.State())
			}
		}
	})
}

// TestDeregisterEndsSending: a work request whose memory was taken back fails,
// and none of what is written there later is sent.
func TestDeregisterEndsSending(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		const length = 8 << 20
		w := enginetest.New(t, enginetest.Options{Seed: 72})
		a, b := w.Pair(local, nil)
		src, sink := a.Client.Register(length, enginetest.ReadWrite), b.Client.Register(length, enginetest.ReadWrite)
		for i := range src.Bytes {
			src.Bytes[i] = 1
		}
		a.Post(enginetest.Write(7, sink, 0), src.SGE(0, length))
		w.Until("the first bytes", time.Second, func() bool { w.Step(); return sink.Bytes[0] != 0 })
		src.Deregister()
		for i := range src.Bytes {
			src.Bytes[i] = 2
		}
		w.Pass(time.Second)
		if n := bytes.Count(sink.Bytes, []byte{2}); n != 0 {
			t.Errorf("%d bytes written after deregistration were sent", n)
		}
		if got := a.Send.Poll(); len(got) != 1 || got[0].WRID != 7 || got[0].Status != abi.StatusLocProtErr {
			t.Errorf("completions %+v, expected one with a local protection error", got)
		}
	})
}

// TestRevocationOracle: random traffic in which regions are deregistered, or
// registered anew, at random moments; afterwards each is filled with its program's own pattern, in
// which nothing may change and of which nothing may be seen at the other end.
func TestRevocationOracle(t *testing.T) {
	for seed := range enginetest.Seeds(20) {
		enginetest.Both(t, func(t *testing.T, local bool) { revokeAtRandom(t, local, 9000+seed) })
	}
}

func revokeAtRandom(t *testing.T, local bool, seed uint64) {
	const size = 1 << 20
	const ours, private = 0x11, 0xee
	w := enginetest.New(t, enginetest.Options{Seed: seed})
	a, b := w.Pair(local, nil)
	ends := [2]*enginetest.QP{a, b}
	var memory [2][]*enginetest.Region
	for i, q := range ends {
		for range 3 {
			r := q.Client.Register(size, enginetest.ReadWrite)
			for j := range r.Bytes {
				r.Bytes[j] = ours
			}
			memory[i] = append(memory[i], r)
		}
	}
	post := func(i int) {
		q, mine, theirs := ends[i], memory[i][w.Rand.IntN(3)], memory[1-i][w.Rand.IntN(3)]
		n := w.Rand.IntN(size)
		switch w.Rand.IntN(3) {
		case 0:
			q.Post(enginetest.Write(1, theirs, 0), mine.SGE(0, n))
		case 1:
			q.Post(enginetest.Read(2, theirs, 0), mine.SGE(0, n))
		case 2:
			ends[1-i].PostRecv(3, theirs.SGE(0, size))
			q.Post(enginetest.Send(4), mine.SGE(0, n))
		}
	}
	for range 6 {
		post(w.Rand.IntN(2))
	}
	for range w.Rand.IntN(300) {
		w.Step()
	}
	side := w.Rand.IntN(2)
	dead := memory[side][w.Rand.IntN(3)]
	if w.Rand.IntN(2) == 0 {
		dead.Reregister() // its keys name other memory now
	} else {
		dead.Deregister()
	}
	for j := range dead.Bytes {
		dead.Bytes[j] = private
	}
	w.Pass(200 * time.Millisecond)
	if n := bytes.Count(dead.Bytes, []byte{private}); n != size {
		t.Errorf("seed %d: %d bytes of a deregistered region were written", seed, size-n)
	}
	for i := range memory {
		for _, r := range memory[i] {
			if n := bytes.Count(r.Bytes, []byte{private}); r != dead && n != 0 {
				t.Errorf("seed %d: %d bytes of a deregistered region were read", seed, n)
			}
		}
	}
}
