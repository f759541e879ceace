package mpa_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// script is a stream of Writes and Sends, divided into random segments, and the expected contents of the
// engine's memory.
type script struct {
	r      *rand.Rand
	p      *peer
	stream []byte
	marks  []int // offsets of FPDUs
	want   []byte
	sends  [][]byte
}

func (s *script) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.r.Uint32())
	}
	return b
}

func (s *script) size() int {
	return []int{s.r.IntN(8), s.r.IntN(2000), 4080 + s.r.IntN(40), s.r.IntN(65000)}[s.r.IntN(4)]
}

func (s *script) add(d wire.DDP, head int, payload []byte) {
	b := make([]byte, head, head+len(payload))
	d.Put(b)
	s.marks = append(s.marks, len(s.stream))
	s.stream = append(s.stream, s.p.fpdu(append(b, payload...))...)
}

func (s *script) write(dst *enginetest.Region) {
	data := s.bytes(s.size() + s.size())
	at := s.r.IntN(len(s.want) - len(data))
	copy(s.want[at:], data)
	for off := 0; ; {
		n := min(len(data)-off, 1+s.size())
		last := off+n == len(data)
		s.add(wire.DDP{Tagged: true, Last: last, Op: wire.OpWrite, STag: wire.STag(dst.STag),
			TO: dst.Base() + uint64(at+off)},
			wire.TaggedLen, data[off:off+n])
		if off += n; last {
			return
		}
	}
}

func (s *script) send() {
	data := s.bytes(s.size())
	s.sends = append(s.sends, data)
	for off := 0; ; {
		n := min(len(data)-off, 1+s.size())
		last := off+n == len(data)
		s.add(wire.DDP{Last: last, Op: wire.OpSend, QN: wire.QueueSend, MSN: wire.MSN(len(s.sends)), MO: uint32(off)},
			wire.UntaggedLen, data[off:off+n])
		if off += n; last {
			return
		}
	}
}

// newScript makes a script for a new connection, with receives for all Sends.
func newScript(w *enginetest.World, seed uint64) (s *script, q *enginetest.QP, dst, box *enginetest.Region) {
	w.T.Helper()
	m := request()
	m.CRC = seed%2 == 0
	p, q, _ := connected(w, m, enginetest.Param(4, ""))
	c := q.Client
	dst = c.Register(1<<19, rw)
	switch seed % 3 {
	case 0:
		dst = c.RegisterFallback(1<<19, rw)
	case 1:
		box = c.RegisterFallback(1<<20, rw)
	}
	if box == nil {
		box = c.Register(1<<20, rw)
	}
	s = &script{r: rand.New(rand.NewPCG(seed, 3)), p: p, want: bytes.Clone(dst.Bytes)}
	for range 40 {
		if len(s.sends) < 15 && s.r.IntN(2) == 0 {
			q.PostRecv(uint64(len(s.sends)), box.SGE(len(s.sends)<<16, 1000), box.SGE(len(s.sends)<<16+1000, 65536-1000))
			s.send()
		} else {
			s.write(dst)
		}
	}
	return s, q, dst, box
}

// play sends the stream in pieces of any size.
func (s *script) play() {
	for b := s.stream; len(b) > 0; {
		n := min(len(b), 1+[]int{s.r.IntN(30), s.r.IntN(3000), s.r.IntN(200000)}[s.r.IntN(3)])
		_ = s.p.conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		n, err := s.p.conn.Write(b[:n])
		if b = b[n:]; err != nil && n == 0 {
			if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
				return // the engine has ended it
			}
		}
		s.p.w.Pass(time.Duration(1+s.r.IntN(3)) * 10 * time.Microsecond)
	}
}

// TestPieces: for any sizes of segments and any pieces of the stream, the bytes are placed correctly.
func TestPieces(t *testing.T) {
	for seed := uint64(1); seed <= seeds(12); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, enginetest.Options{Seed: seed<<20 | 77})
			s, q, dst, box := newScript(w, seed)
			s.play()
			var done []abi.CQE
			w.Until("all Sends", time.Minute, func() bool {
				done = append(done,
					q.Recv.Poll()...)
				return len(done) == len(s.sends)
			})
			w.Pass(10 * time.Millisecond)
			for i, e := range done {
				if e.Status != abi.StatusSuccess || int(e.ByteLen) != len(s.sends[i]) ||
					!bytes.Equal(box.Bytes[i<<16:][:e.ByteLen], s.sends[i]) {
					t.Fatalf("Send %d of %d bytes: %+v", i, len(s.sends[i]), e)
				}
			}
			if !bytes.Equal(dst.Bytes, s.want) {
				t.Error("Writes differ")
			}
		})
	}
}

// TestDamagedStreams: changed, missing or additional bytes harm only the connection. With CRCs no byte of a wrong
// FPDU completes anything.
func TestDamagedStreams(t *testing.T) {
	for seed := uint64(1); seed <= seeds(40); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, enginetest.Options{Seed: seed<<20 | 78})
			s, q, _, box := newScript(w, seed)
			at := s.marks[s.r.IntN(len(s.marks))] + s.r.IntN(30)
			switch at = min(at, len(s.stream)-1); s.r.IntN(3) {
			case 0:
				s.stream[at] ^= byte(1 << s.r.IntN(8))
			case 1:
				s.stream = append(s.stream[:at], s.stream[min(len(s.stream), at+1+s.r.IntN(20)):]...)
			case 2:
				s.stream = append(s.stream[:at:at], append(s.bytes(1+s.r.IntN(20)), s.stream[at:]...)...)
			}
			s.play()
			w.Pass(time.Millisecond)
			if s.r.IntN(2) == 0 {
				_ = s.p.conn.CloseWrite()
			} else {
				s.p.reset()
			}
			w.Pass(5 * time.Second)
			idle(w)
			for i, e := range q.Recv.Poll() {
				if s.p.crc && e.Status == abi.StatusSuccess && !bytes.Equal(box.Bytes[i<<16:][:e.ByteLen], s.sends[i]) {
					t.Errorf("Send %d is wrong, in spite of CRCs", i)
				}
			}
		})
	}
}

// BenchmarkWrites measures Writes from one engine to another over lo, on one thread. It also reports the processor
// time, because other processes use the processor, too.
func BenchmarkWrites(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmarkWrites(b, size) })
	}
}

func benchmarkWrites(b *testing.B, size int) {
	const depth = 64
	w := world(b, enginetest.Options{Seed: 1})
	c := enginetest.DefaultCap
	c.MaxSendWR = 128
	x, y := w.Pair(false, &c)
	src, dst := x.Client.Register(size, rw), y.Client.Register(size, rw)
	wr, sge := enginetest.Write(1, dst, 0), []abi.SGE{src.SGE(0, size)}
	cqes := make([]abi.CQE, 16)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	posted, done := 0, 0
	used := processorTime(b)
	for b.Loop() {
		x.Ring.SQ.Write(&wr, sge)
		x.Ring.SQ.Publish()
		x.Bell()
		for posted++; posted-done >= depth; done += x.Send.PollInto(cqes) {
			w.Turn()
		}
	}
	b.ReportMetric(float64(processorTime(b)-used)/float64(b.N), "cpu-ns/op")
	for ; done < posted; done += x.Send.PollInto(cqes) {
		w.Turn()
	}
}

// processorTime returns the process's processor time so far.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBareTCP writes as many bytes to a socket and reads them from another.
func BenchmarkBareTCP(b *testing.B) {
	if noSockets {
		b.Skip("no network namespace")
	}
	benchmarkBare(b)
}

func benchmarkBare(b *testing.B) {
	const size = 64 << 10
	l, err := net.Listen("tcp", "10.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	out, in := make([]byte, size), make([]byte, size)
	measured(b, size, func() error {
		if _, err := x.Write(out); err != nil {
			return err
		}
		_, err := io.ReadFull(y, in)
		return err
	})
}
