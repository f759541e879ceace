package mpa_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// The first byte of FuzzStream's data says what follows; its upper bits give the size of the pieces in which it is
// sent: pieceSizes.
const (
	fuzzSegments = 1 << iota // segments, each after its length in two bytes; they are sent as right FPDUs
	fuzzStream               // bytes after a right request; otherwise the request is among them
	fuzzCRC                  // the right request asks for CRCs
	fuzzShift    = 3
)

var pieceSizes = [...]int{1 << 20, 1, 2, 3, 17, 100, 1000, 20000}

// fuzzed is a program that accepts every request. Its world is used for all inputs.
type fuzzed struct {
	*exchange
	child           *cm.ID // the request that has arrived
	mine, forbidden *enginetest.Region
}

// unused returns a port number that nobody uses at any address.
func unused(t testing.TB) uint16 {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func newFuzzed(t testing.TB) *fuzzed {
	// a fixed seed: STags in the corpus are valid in every process
	w := world(t, enginetest.Options{Seed: 1, NoCapture: true})
	z := &fuzzed{exchange: &exchange{w: w, c: w.A.NewClient()}}
	z.send, z.recv = z.c.NewCQ(64), z.c.NewCQ(64)
	port = unused(t) // go test -fuzz has several processes in one network namespace
	z.c.Listen(port, 64)
	z.mine, z.forbidden = z.c.Register(1<<16, rw), w.A.NewClient().Register(1<<16, rw)
	for i := range z.forbidden.Bytes {
		z.forbidden.Bytes[i] = 0x5e
	}
	return z
}

// turns makes the engine process the received data.
func (z *fuzzed) turns() {
	busy := true
	for n := 0; busy; n++ {
		if busy, _ = z.w.A.Engine.Turn(z.w.Now()); n > 100_000 {
			z.w.T.Fatal("the engine is busy for ever")
		}
	}
}

// try sends data from a peer, as its first byte says.
func (z *fuzzed) try(t *testing.T, data []byte) {
	if len(data) == 0 {
		return
	}
	z.w.T = t
	how, data := data[0], data[1:]
	p := dial(z.w)
	p.crc = how&fuzzCRC != 0
	q := z.qp()
	for i := range 3 {
		q.PostRecv(uint64(i), z.mine.SGE(0, 1000), z.mine.SGE(1000, 20000))
	}
	if how&(fuzzStream|fuzzSegments) != 0 {
		m := request()
		m.CRC = p.crc
		z.child = z.c.Accept(p.requested(z.c, m), q, enginetest.Param(4, ""))
	}
	if how&fuzzSegments != 0 {
		var stream []byte
		for len(data) >= 2 {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			stream = append(stream, p.fpdu(data[2:2+n])...)
			data = data[2+n:]
		}
		data = stream
	}
	piece := max(pieceSizes[how>>fuzzShift%uint8(len(pieceSizes))], len(data)/300)
	for len(data) > 0 {
		n := min(piece, len(data))
		_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := p.conn.Write(data[:n]); err != nil {
			break // the engine has ended it
		}
		data = data[n:]
		z.turns()
		z.accepts(q)
	}
	p.read()
	z.leaves(t, p, q)
	if bytes.Contains(p.in, bytes.Repeat([]byte{0x5e}, 64)) ||
		!bytes.Equal(z.forbidden.Bytes, bytes.Repeat([]byte{0x5e}, 1<<16)) {
		t.Error("memory that the peer has no right to was read, or written")
	}
}

// accepts lets the program accept a request that has arrived.
func (z *fuzzed) accepts(q *enginetest.QP) {
	if ev, ok := z.c.Next(); ok && ev.Kind == cm.EventConnectRequest {
		z.child = z.c.Accept(ev.Child, q, enginetest.Param(4, ""))
		z.turns()
	}
}

// leaves ends the connection and checks that nothing of it is left.
func (z *fuzzed) leaves(t *testing.T, p *peer, q *enginetest.QP) {
	p.reset()
	z.turns()
	z.accepts(q) // a late request
	q.Destroy()
	if z.child != nil {
		z.c.Destroy(z.child)
		z.child = nil
	}
	z.w.Pass(10 * time.Microsecond)
	if z.c.Sockets != 1 {
		t.Errorf("%d sockets are left beside the listener's", z.c.Sockets-1)
	}
	z.send.Poll()
	z.recv.Poll()
	z.c.DrainEvents()
}

// FuzzStream: a peer sends any bytes, in any pieces: a request and FPDUs, or FPDUs after a right request. It must
// reach no memory without rights, and leave only an ended connection.
func FuzzStream(f *testing.F) {
	z := newFuzzed(f)
	m := request()
	asks, err := m.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	segments := fuzzSeeds(z)
	var behind, records []byte
	for _, s := range segments {
		behind = append(behind, (&peer{}).fpdu(s)...)
		records = append(binary.BigEndian.AppendUint16(records, uint16(len(s))), s...)
	}
	for i := range uint8(len(pieceSizes)) {
		f.Add(append([]byte{i << fuzzShift}, append(asks, behind...)...))
		f.Add(append([]byte{fuzzStream | i<<fuzzShift}, behind...))
		f.Add(append([]byte{fuzzSegments | fuzzCRC*(i%2) | i<<fuzzShift}, records...))
	}
	for _, s := range segments {
		f.Add(append([]byte{fuzzSegments, byte(len(s) >> 8), byte(len(s))}, s...))
	}
	f.Fuzz(z.try)
}

// fuzzSeeds are segments of every kind: most are right, if they come in this order.
func fuzzSeeds(z *fuzzed) [][]byte {
	segment := func(d wire.DDP, payload []byte) []byte {
		b := make([]byte, wire.UntaggedLen, wire.UntaggedLen+len(payload))
		return append(b[:d.Put(b)], payload...)
	}
	read := func(of *enginetest.Region) []byte {
		b := make([]byte, wire.ReadRequestLen)
		r := wire.ReadRequest{Length: 5000, SrcSTag: wire.STag(of.STag), SrcTO: of.Base()}
		r.Put(b)
		return b
	}
	write := func(to *enginetest.Region, n int) []byte {
		return segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(to.STag), TO: to.Base()},
			make([]byte, n))
	}
	return [][]byte{
		write(z.mine, 0), write(z.mine, 100), write(z.mine, 6000),
		segment(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}, make([]byte, 5000)),
		segment(wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1, MO: 5000}, make([]byte, 10)),
		segment(wire.DDP{Last: true, Op: wire.OpSendSEInv, QN: wire.QueueSend, MSN: 2, STag: wire.STag(z.mine.STag)},
			make([]byte, 10)),
		segment(wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 1}, read(z.mine)),
		segment(wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 2}, read(z.forbidden)),
		segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 1}, make([]byte, 10)),
		write(z.forbidden, 100),
		segment(wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}, make([]byte, 30)),
	}
}
