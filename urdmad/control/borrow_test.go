package control_test

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// channel makes an rdma_cm event channel and returns its handle and its socket.
func (c *client) channel(t *testing.T) (handle uint32, events int) {
	t.Helper()
	return c.withSocket(t, request(abi.CMCreateChannel))
}

// withSocket makes an object that has an event socket and returns its handle and that.
func (c *client) withSocket(t *testing.T, b []byte) (handle uint32, events int) {
	t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		t.Fatal(err)
	}
	in, oob := make([]byte, abi.MaxMessage), make([]byte, 256)
	n, oobn, _, _, err := c.conn.ReadMsgUnix(in, oob)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := abi.Decode[abi.HandleMessage](in[:n])
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if !ok || err != nil || len(messages) != 1 {
		t.Fatalf("answer of %d bytes with %d control messages, %v", n, len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatal(fds, err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	return r.Handle, fds[0]
}

// event waits for the next event of a channel.
func event(t *testing.T, events int, kind uint32) abi.CMEvent {
	t.Helper()
	b := heard(t, events)
	ev, ok := abi.Decode[abi.CMEvent](b)
	if !ok || ev.Event != kind {
		t.Fatalf("event %+v of %d bytes, expected kind %d", ev, len(b), kind)
	}
	return ev
}

// heard waits for the next message on an event socket. With a time limit a signal of the
// Go runtime's ends read(2), see signal(7).
func heard(t *testing.T, events int) []byte {
	t.Helper()
	limit := unix.NsecToTimeval(int64(time.Minute))
	if err := unix.SetsockoptTimeval(events, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, abi.MaxMessage)
	n, err := unix.Read(events, b)
	for err == unix.EINTR {
		n, err = unix.Read(events, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// TestRequestsWakeNobody: while the worker sleeps, the requests of a connection from
// its first to its last are carried out without it: nothing of them waits for
// another thread.
func TestRequestsWakeNobody(t *testing.T) {
	var turns atomic.Int64
	r := start(t, func(s *control.Server) {
		w := s.Workers[0]
		wake, borrow := w.Wake, w.Borrow
		w.Wake = func() { turns.Add(1); wake() }
		w.Borrow = func(fn func()) bool {
			for !borrow(fn) { // what waits here is this test, until the worker sleeps
				time.Sleep(20 * time.Microsecond)
			}
			return true
		}
	})
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	if err := c.makeObjects(); err != nil {
		t.Fatal(err)
	}
	channel, events := c.channel(t)
	before := turns.Load()
	c.connectOnce(t, channel, events)
	if n := turns.Load() - before; n != 0 {
		t.Errorf("the worker was asked %d times", n)
	}
}

// makePair makes a queue pair in INIT and the completion queue for it.
func (c *client) makePair(t *testing.T) (qp uint32) {
	t.Helper()
	ctx := must[abi.HandleMessage](t)(call[abi.OpenDeviceRequest, abi.HandleMessage](c, abi.OpenDevice,
		abi.OpenDeviceRequest{}))
	pd := must[abi.HandleMessage](t)(call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD,
		abi.HandleMessage{Handle: ctx.Handle}))
	cq := must[abi.CQResponse](t)(call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ,
		abi.CreateCQRequest{Context: ctx.Handle, CQE: 10}))
	q := must[abi.QPResponse](t)(call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
		abi.CreateQPRequest{PD: pd.Handle, QPType: abi.QPTypeRC,
			SendCQ: cq.Handle, RecvCQ: cq.Handle, Cap: abi.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}}))
	must[abi.QueryQPResponse](t)(call[abi.ModifyQPRequest, abi.QueryQPResponse](c, abi.ModifyQP,
		abi.ModifyQPRequest{Handle: q.Handle,
			Mask: abi.QPMaskState | abi.QPMaskAccessFlags | abi.QPMaskPort | abi.QPMaskPKeyIndex,
			Attr: abi.QPAttr{QPState: abi.QPSInit, PortNum: 1}}))
	return q.Handle
}

// must fails the test where a call failed.
func must[R any](t *testing.T) func(R, error) R {
	return func(r R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// succeeded fails the test where a call did, or was refused.
func succeeded(t *testing.T) func(abi.Header, error) {
	return func(h abi.Header, err error) {
		t.Helper()
		if must[abi.Header](t)(h, err); h.Status != 0 {
			t.Fatalf("request %d: %v", h.Type, syscall.Errno(h.Status))
		}
	}
}

// requested is a listener's connection request.
type requested struct{ listener, active, child uint32 }

// request has an id of the client ask another for a connection, all on one channel.
func (c *client) request(t *testing.T, channel uint32, events int) requested {
	t.Helper()
	ok := succeeded(t)
	at := control.AddrFrom4([4]byte{198, 18, 0, 1}, 7471)
	id := func() uint32 {
		return must[abi.HandleMessage](t)(call[abi.CMCreateIDRequest, abi.HandleMessage](c, abi.CMCreateID,
			abi.CMCreateIDRequest{Channel: channel, PS: abi.PSTCP})).Handle
	}
	listener, active := id(), id()
	bound := must[abi.CMBound](t)
	bound(call[abi.CMBindRequest, abi.CMBound](c, abi.CMBind, abi.CMBindRequest{ID: listener, Addr: at}))
	bound(call[abi.CMValueRequest, abi.CMBound](c, abi.CMListen, abi.CMValueRequest{ID: listener, Value: 3}))
	bound(call[abi.CMResolveAddrRequest, abi.CMBound](c, abi.CMResolveAddr,
		abi.CMResolveAddrRequest{ID: active, TimeoutMS: 2000, Dst: at}))
	event(t, events, 0) // ADDR_RESOLVED
	ok(call[abi.CMValueRequest, abi.Header](c, abi.CMResolveRoute, abi.CMValueRequest{ID: active, Value: 2000}))
	event(t, events, 2) // ROUTE_RESOLVED
	ok(call[abi.CMConnRequest, abi.Header](c, abi.CMConnect,
		abi.CMConnRequest{ID: active, Param: abi.CMParam{QP: c.makePair(t)}}))
	return requested{listener, active, event(t, events, 4).Child} // CONNECT_REQUEST
}

// connectOnce connects two ids of the client.
func (c *client) connectOnce(t *testing.T, channel uint32, events int) {
	t.Helper()
	ok := succeeded(t)
	v := c.request(t, channel, events)
	ok(call[abi.CMConnRequest, abi.Header](c, abi.CMAccept,
		abi.CMConnRequest{ID: v.child, Param: abi.CMParam{QP: c.makePair(t)}}))
	event(t, events, 9) // ESTABLISHED
	event(t, events, 9)
	ok(call[abi.HandleMessage, abi.Header](c, abi.CMDisconnect, abi.HandleMessage{Handle: v.active}))
	event(t, events, 10) // DISCONNECTED
	event(t, events, 10)
	for _, h := range []uint32{v.listener, v.active, v.child} {
		ok(call[abi.HandleMessage, abi.Header](c, abi.CMDestroyID, abi.HandleMessage{Handle: h}))
	}
}
