package mpa_test

import (
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// setMTU gives lo an MTU for the time of a benchmark.
func setMTU(b *testing.B, mtu uint32) {
	b.Helper()
	if noSockets {
		b.Skip("no network namespace")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Close(fd) })
	set := func(mtu uint32) error {
		r, err := unix.NewIfreq("lo")
		if err == nil {
			r.SetUint32(mtu)
			err = unix.IoctlIfreq(fd, unix.SIOCSIFMTU, r)
		}
		return err
	}
	if err := set(mtu); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = set(65536) })
}

// BenchmarkShort measures Writes of 64 KiB in FPDUs of one TCP segment, to and from a peer that only reads or writes
// its socket, all on one thread, over lo with Ethernet's MTU. BenchmarkShort/bare does the same without urdma.
func BenchmarkShort(b *testing.B) {
	const size = 64 << 10
	b.Run("bare", func(b *testing.B) {
		setMTU(b, 1500)
		benchmarkBare(b)
	})
	b.Run("send", func(b *testing.B) {
		setMTU(b, 1500)
		p, q := shortPeer(b)
		src := q.Client.Register(size, rw)
		wr := abi.SQE{WRID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: 7}
		in, n := make([]byte, 2*size), 0
		post := func() {
			q.Post(wr, src.SGE(0, size))
			for busy := true; busy; {
				busy, _ = p.w.A.Engine.Turn(p.w.Now())
			}
		}
		for post(); ; { // counts the bytes
			_ = p.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			got, err := p.conn.Read(in)
			if n += got; err != nil {
				break
			}
		}
		_ = p.conn.SetReadDeadline(time.Time{})
		q.Send.Poll()
		measured(b, size, func() error {
			post()
			q.Send.Poll()
			_, err := io.ReadFull(p.conn, in[:n])
			return err
		})
	})
	b.Run("receive", func(b *testing.B) {
		setMTU(b, 1500)
		p, q := shortPeer(b)
		dst := q.Client.Register(size, rw)
		const payload = 1428 // as in send
		var stream []byte
		for at := 0; at < size; at += payload {
			s := make([]byte, wire.TaggedLen+min(payload, size-at))
			d := wire.DDP{Tagged: true, Last: at+payload >= size, Op: wire.OpWrite, STag: wire.STag(dst.STag),
				TO: dst.Base() + uint64(at)}
			d.Put(s)
			stream = append(stream, p.fpdu(s)...)
		}
		measured(b, size, func() error {
			_, err := p.conn.Write(stream)
			for busy := true; busy; {
				busy, _ = p.w.A.Engine.Turn(p.w.Now())
			}
			return err
		})
	})
}

// shortPeer is a peer of which urdmad does not know that it accepts FPDUs longer than a segment.
func shortPeer(b *testing.B) (*peer, *enginetest.QP) {
	m := request()
	m.Long = false
	p, q, _ := connected(world(b, enginetest.Options{Seed: 1}), m, enginetest.Param(4, ""))
	p.w.Pass(100 * time.Millisecond)
	_ = p.conn.SetDeadline(time.Time{})
	return p, q
}

// measured reports the time and the processor time that a step takes.
func measured(b *testing.B, size int, step func() error) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	used := processorTime(b)
	for b.Loop() {
		if err := step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-used)/float64(b.N), "cpu-ns/op")
}
