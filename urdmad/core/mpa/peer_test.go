package mpa_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// peer is the other end of a connection, which may send any bytes.
type peer struct {
	w    *enginetest.World
	conn *net.TCPConn
	in   []byte // received data
	end  error  // how the stream has ended
	crc  bool
}

// dial connects to host A.
func dial(w *enginetest.World) *peer {
	w.T.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { // a small window: the engine has to wait
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10) })
	}}
	c, err := d.Dial("tcp", enginetest.At(w.A.Addr, port).String())
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = c.Close() })
	return &peer{w: w, conn: c.(*net.TCPConn)}
}

func (p *peer) send(b []byte) {
	p.w.T.Helper()
	for len(b) > 0 {
		_ = p.conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
		n, err := p.conn.Write(b)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			p.w.T.Fatal(err)
		}
		b = b[n:]
		p.w.Pass(50 * time.Microsecond)
	}
}

func (p *peer) frame(m *wire.MPA) {
	p.w.T.Helper()
	b, err := m.Append(nil)
	if err != nil {
		p.w.T.Fatal(err)
	}
	p.send(b)
}

// read reads the data that have arrived; false at the end of the stream.
func (p *peer) read() bool {
	b := make([]byte, 64<<10)
	_ = p.conn.SetReadDeadline(time.Now().Add(100 * time.Microsecond))
	n, err := p.conn.Read(b)
	p.in = append(p.in, b[:n]...)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.end = err
	}
	return p.end == nil
}

// await reads until there are n bytes, and removes them.
func (p *peer) await(n int) []byte {
	p.w.T.Helper()
	p.w.Until("bytes of the engine's", time.Minute, func() bool {
		p.read()
		if len(p.in) < n && p.end != nil {
			p.w.T.Fatalf("%d bytes, then %v; expected %d", len(p.in), p.end, n)
		}
		return len(p.in) >= n
	})
	b := p.in[:n]
	p.in = p.in[n:]
	return b
}

// reply reads the engine's request or reply.
func (p *peer) reply(reply bool) (m wire.MPA) {
	p.w.T.Helper()
	head := p.await(wire.MPALen)
	n, err := wire.MPAFrameLen(head, reply)
	if err != nil {
		p.w.T.Fatal(err)
	}
	head = append(head[:len(head):len(head)], p.await(n-len(head))...)
	if _, err := m.Parse(head, reply); err != nil {
		p.w.T.Fatal(err)
	}
	return m
}

// segment reads the next FPDU and checks its CRC.
func (p *peer) segment() []byte {
	p.w.T.Helper()
	head := p.await(wire.FPDUHeaderLen)
	n := int(binary.BigEndian.Uint16(head))
	rest := p.await(wire.FPDULen(n) - wire.FPDUHeaderLen)
	end := len(rest) - wire.FPDUCRCLen
	want := uint32(0)
	if p.crc {
		want = wire.FPDUCRC(wire.FPDUCRC(0, head), rest[:end])
	}
	if got := binary.LittleEndian.Uint32(rest[end:]); got != want {
		p.w.T.Fatalf("the CRC of an FPDU of %d bytes is %#x, expected %#x", n, got, want)
	}
	return rest[:n]
}

// fpdu makes an FPDU.
func (p *peer) fpdu(segment []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(segment)))
	b = append(b, segment...)
	b = append(b, make([]byte, wire.FPDUPadding(len(segment)))...)
	crc := uint32(0)
	if p.crc {
		crc = wire.FPDUCRC(0, b)
	}
	return binary.LittleEndian.AppendUint32(b, crc)
}

// ended waits for the end of the stream.
func (p *peer) ended() error {
	p.w.T.Helper()
	p.w.Until("end of the stream", time.Minute, func() bool { return !p.read() })
	return p.end
}

func (p *peer) reset() {
	_ = p.conn.SetLinger(0)
	_ = p.conn.Close()
}

// requested waits until the engine's program has got a request.
func (p *peer) requested(c *enginetest.Client, m wire.MPA) *cm.ID {
	p.w.T.Helper()
	p.frame(&m)
	return c.Event(cm.EventConnectRequest, time.Minute).Child
}

// connected is a queue pair of host A with a connection to a peer.
func connected(w *enginetest.World, m wire.MPA, param *cm.Param) (*peer, *enginetest.QP, *cm.ID) {
	w.T.Helper()
	c := w.A.NewClient()
	c.Listen(port, 8)
	q := c.NewQP(nil)
	p := dial(w)
	p.crc = m.CRC
	id := p.requested(c, m)
	c.Accept(id, q, param)
	if r := p.reply(true); r.Reject {
		w.T.Fatal("rejected")
	}
	c.Event(cm.EventEstablished, time.Minute)
	return p, q, id
}

// request returns a request of siw.
func request() wire.MPA {
	return wire.MPA{Revision: 2, Enhanced: true, IRD: 4, ORD: 4, Long: true, PrivateData: []byte("hello")}
}

// TestRejectingRequest: the bit by which a reply rejects means nothing in a request.
func TestRejectingRequest(t *testing.T) {
	w := world(t, enginetest.Options{})
	c := w.A.NewClient()
	c.Listen(port, 8)
	m := request()
	m.Reject = true
	if id := dial(w).requested(c, m); id == nil {
		t.Error("the request's id is missing")
	}
}

// idle checks that the engine has nothing to do, and that nothing wakes it.
func idle(w *enginetest.World) {
	w.T.Helper()
	for range 50 {
		if busy, _ := w.A.Engine.Turn(w.Now()); !busy {
			fds := []unix.PollFd{{Fd: int32(w.A.Engine.MPA.Descriptor()), Events: unix.POLLIN}}
			if n, _ := unix.Poll(fds, 0); n == 0 {
				return
			}
		}
	}
	w.T.Error("the engine never comes to rest")
}

// TestResetBeforeAnswer: a peer that has left before the program answers must not keep the worker busy; the program
// learns of it when it accepts.
func TestResetBeforeAnswer(t *testing.T) {
	for name, leave := range map[string]func(p *peer){"reset": (*peer).reset,
		"end": func(p *peer) { _ = p.conn.CloseWrite() }} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			c := w.A.NewClient()
			c.Listen(port, 8)
			p := dial(w)
			id := p.requested(c, request())
			leave(p)
			w.Pass(time.Millisecond)
			idle(w)
			c.Accept(id, c.NewQP(nil), enginetest.Param(4, ""))
			if ev := c.Any(time.Minute); ev.Kind != cm.EventConnectError {
				t.Errorf("event %v", ev.Kind)
			}
		})
	}
}

// TestNoDescriptors: connections that can't be accepted wait in the kernel, and the worker sleeps during that time.
func TestNoDescriptors(t *testing.T) {
	w := world(t, enginetest.Options{})
	c := w.A.NewClient()
	c.Listen(port, 8)
	p := dial(w)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	idle(w)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	p.requested(c, request())
}

// TestMarkersInReply: a peer that asks for markers gets no FPDUs.
func TestMarkersInReply(t *testing.T) {
	w := world(t, enginetest.Options{})
	l := listening(w)
	c := w.A.NewClient()
	id := c.Resolve(w.B.Addr, port)
	c.Connect(id, c.NewQP(nil), enginetest.Param(4, ""))
	p := l.accept()
	p.reply(false)
	m := request()
	m.Reply, m.Markers = true, true
	p.frame(&m)
	if ev := c.Any(time.Minute); ev.Kind != cm.EventUnreachable {
		t.Errorf("event %v", ev.Kind)
	}
	if err := p.ended(); err == nil {
		t.Error("the connection stands")
	}
}

// listener is a peer to which connections are made.
type listener struct {
	w *enginetest.World
	*net.TCPListener
}

func listening(w *enginetest.World) listener {
	w.T.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(enginetest.At(w.B.Addr, port)))
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = l.Close() })
	return listener{w, l}
}

// accept accepts the engine's next connection.
func (l listener) accept() *peer {
	l.w.T.Helper()
	p := &peer{w: l.w}
	l.w.Until("a connection of the engine's", time.Minute, func() bool {
		_ = l.SetDeadline(time.Now().Add(100 * time.Microsecond))
		conn, err := l.AcceptTCP()
		if err != nil {
			return false
		}
		p.conn = conn
		return true
	})
	l.w.T.Cleanup(func() { _ = p.conn.Close() })
	return p
}

// TestReadyToReceive: the first message of a peer-to-peer initiator is accepted whatever the program has
// requested.
func TestReadyToReceive(t *testing.T) {
	read := make([]byte, wire.UntaggedLen+wire.ReadRequestLen)
	d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: 1}
	r := wire.ReadRequest{}
	r.Put(read[d.Put(read):])
	write := make([]byte, wire.TaggedLen)
	d = wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite}
	d.Put(write)
	send := make([]byte, wire.UntaggedLen, 64)
	d = wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}
	d.Put(send)
	send = append(send, "hello"...)
	for name, c := range map[string]struct {
		set   func(m *wire.MPA)
		first []byte
		has   int // bytes of the answer
	}{
		"Write":      {func(m *wire.MPA) { m.RTRWrite, m.RTRRead, m.RTRSend = true, true, true }, write, 0},
		"Read":       {func(m *wire.MPA) { m.RTRRead, m.RTRSend = true, true }, read, wire.TaggedLen},
		"no FULPDU":  {func(m *wire.MPA) { m.RTRSend = true }, nil, 0},
		"but a Send": {func(m *wire.MPA) { m.RTRSend = true }, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			m := request()
			m.PeerToPeer = true
			c.set(&m)
			p, q, _ := connected(w, m, enginetest.Param(0, ""))
			dst := q.Client.Register(64, rw)
			q.PostRecv(1, dst.SGE(0, 64))
			if c.has >= 0 {
				p.send(p.fpdu(c.first))
			}
			if c.has > 0 {
				if s := p.segment(); len(s) != c.has {
					t.Errorf("answer %x", s)
				}
			}
			p.send(p.fpdu(send))
			w.Until("the Send", time.Second, func() bool { return len(q.Recv.Poll()) == 1 })
		})
	}
}

// TestSilentPeers: the number of peers that send no request, or were refused and don't leave, is limited. They are
// closed in the end, and don't keep others out.
func TestSilentPeers(t *testing.T) {
	refused := request()
	refused.Markers = true
	for name, m := range map[string]*wire.MPA{"silent": nil, "refused": &refused} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			c := w.A.NewClient()
			c.Listen(port, 8)
			var peers []*peer
			const more = 6
			for range 1024 + more {
				p := dial(w)
				if m != nil {
					b, _ := m.Append(nil)
					_, _ = p.conn.Write(b)
				}
				peers = append(peers, p)
				w.A.Engine.Turn(w.Now())
			}
			w.Until("all connections", time.Second, func() bool { return w.A.Engine.MPA.Stats.Refused >= more })
			if n := w.A.Engine.MPA.Stats.Refused; n != more {
				t.Errorf("%d have lost their places", n)
			}
			for _, p := range peers[:more] {
				_ = p.ended()
			}
			p := dial(w)
			p.requested(c, request())
			w.Pass(20 * time.Second)
			for _, p := range peers {
				if err := p.ended(); err == nil {
					t.Fatal("a connection stands")
				}
			}
		})
	}
}

// TestDisconnectWhileAccepting: the program disconnects a connection that it has accepted before the peer has shown
// whether it is a urdmad.
func TestDisconnectWhileAccepting(t *testing.T) {
	w := world(t, enginetest.Options{})
	c := w.A.NewClient()
	c.Listen(port, 8)
	p := dial(w)
	m := request()
	m.Extension = true
	id := p.requested(c, m)
	c.Accept(id, c.NewQP(nil), enginetest.Param(4, ""))
	p.reply(true)
	before := w.Now()
	c.Disconnect(id)
	if err := p.ended(); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Error(err)
	}
	if ev := c.Any(time.Minute); ev.Kind != cm.EventConnectError || time.Duration(w.Now()-before) > time.Second {
		t.Errorf("event %v after %v", ev.Kind, time.Duration(w.Now()-before))
	}
}

// TestGoneWhileWaiting: if a peer leaves while its request waits for room in a listener's backlog, nothing of it is
// left, and the program does not see it.
func TestGoneWhileWaiting(t *testing.T) {
	w := world(t, enginetest.Options{})
	c := w.A.NewClient()
	c.Listen(port, 1)
	p := dial(w)
	first := p.requested(c, request())
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := descriptors()
	for range 10 {
		p := dial(w)
		m := request()
		p.frame(&m)
		p.reset()
		w.Pass(time.Millisecond)
	}
	w.Until("the descriptors to be closed", time.Minute, func() bool { return descriptors() == before })
	c.Destroy(first)
	w.Pass(time.Second)
	c.NoEvent()
}

// TestWorkOfRefused: data that a refused peer still sends count as work of the turn that reads them.
func TestWorkOfRefused(t *testing.T) {
	w := world(t, enginetest.Options{})
	w.A.NewClient().Listen(port, 8)
	p := dial(w)
	m := request()
	m.Markers = true
	p.frame(&m)
	p.reply(true)
	const size = 50_000
	_ = p.conn.SetWriteDeadline(time.Time{})
	if _, err := p.conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	e, spent := w.A.Engine, 0
	for end := time.Now().Add(time.Minute); spent < size && time.Now().Before(end); {
		before := e.QPs.Spent()
		e.MPA.Look()
		e.MPA.Poll()
		spent += e.QPs.Spent() - before
	}
	if spent < size {
		t.Errorf("%d bytes were read, and %d count", size, spent)
	}
}
