package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/clock"
	"urdma/urdmad/engine"
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// Session is one client's connection and everything it owns.
type Session struct {
	s      *Server
	conn   *net.UnixConn
	id     uint64
	name   string
	client *engine.Client
	space  *mem.Space
	owner  owner

	bells    *sharedMemory
	kick     int // our end of the kick socket, -1 none
	ready    bool
	greeted  bool        // clientAmounts are taken
	asked    atomic.Bool // has made a request
	objects  map[uint32]any
	bills    map[uint32]*amounts // what the objects take
	next     uint32
	mu       sync.Mutex // guards objects, bills and next, see add
	used     ledger
	user     *user
	ended    bool          // cleanUp has begun; engine thread
	over     chan struct{} // closed after cleanUp
	received []*os.File    // descriptors of the request at hand
	fallback bool          // oneFallback is taken
	capture  *capture
}

func newSession(s *Server, c *net.UnixConn) *Session {
	x := &Session{s: s, conn: c, id: s.nextID.Add(1), name: "new client", kick: -1,
		objects: map[uint32]any{}, bills: map[uint32]*amounts{}, over: make(chan struct{})}
	x.owner.learn(c)
	x.user = s.accounts.join(x.owner.uid)
	_ = c.SetReadDeadline(time.Now().Add(firstRequestTime)) // a socket that is closed ends the session anyway
	return x
}

// run reads requests until the client hangs up or breaks the protocol.
func (x *Session) run() {
	err := x.serve()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("control: no request within %v of connecting", firstRequestTime)
	}
	if err != nil && !errors.Is(err, errHangUp) && !errors.Is(err, net.ErrClosed) {
		x.s.Log.Warn("client closed", "client", x.name, "error", err)
	}
	x.cleanUp()
	close(x.over)
	x.conn.Close()
	x.s.Log.Debug("client gone", "client", x.name)
}

var errHangUp = errors.New("control: the client hung up")

func (x *Session) serve() error {
	buf := make([]byte, abi.MaxMessage)
	for {
		n, err := x.receive(buf)
		if err == nil {
			if x.asked.CompareAndSwap(false, true) {
				_ = x.conn.SetReadDeadline(time.Time{})
			}
			err = x.request(buf[:n])
		}
		x.dropReceived()
		if err != nil {
			return err
		}
	}
}

// receive reads one message and its descriptors, which are the session's also
// after an error: a message of no bytes looks like the end of the connection
// and may bring some.
func (x *Session) receive(buf []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	n, oobn, flags, _, err := x.conn.ReadMsgUnix(buf, oob)
	if oobn > 0 {
		var bad error
		if x.received, bad = receivedFiles(oob[:oobn]); err == nil {
			err = bad
		}
	}
	if len(x.received) > 0 && x.user.closer.stuck() {
		return 0, fmt.Errorf("control: %d descriptors of user %d can't be closed", maxUnclosed, x.owner.uid)
	}
	switch {
	case n == 0 && err == nil, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return 0, errHangUp
	case err != nil:
		return 0, err
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return 0, fmt.Errorf("control: message longer than %d bytes or with more than %d descriptors", abi.MaxMessage, abi.MaxFDs)
	}
	return n, nil
}

func receivedFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control: ancillary data: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // not descriptors
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "from client"))
		}
	}
	return files, nil
}

// takeFile returns the next descriptor of the request, whose owner the caller is
// from now on; nil if there is none.
func (x *Session) takeFile() *os.File {
	if len(x.received) == 0 {
		return nil
	}
	f := x.received[0]
	x.received = x.received[1:]
	return f
}

func (x *Session) dropReceived() {
	for _, f := range x.received {
		x.user.closer.close(f)
	}
	x.received = nil
}

// request answers one message. An error ends the session; what the client may
// get wrong is an errno in the response instead.
func (x *Session) request(b []byte) error {
	if len(b) < abi.Size[abi.Header]() {
		return fmt.Errorf("control: message of %d bytes is shorter than its header", len(b))
	}
	h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	if int(h.Length) != len(b) {
		return fmt.Errorf("control: message of %d bytes says it has %d", len(b), h.Length)
	}
	if !x.ready && h.Type != abi.Hello && !looks(h.Type) {
		return fmt.Errorf("control: first message has type %d, expected HELLO (%d)", h.Type, abi.Hello)
	}
	r := reply{}
	err := x.dispatch(h.Type, b, &r)
	return x.answer(h, r, err)
}

// looks reports a request that looks inside and makes nothing: it needs neither
// doorbells nor a kick socket, so no HELLO.
func looks(t abi.Type) bool { return t == abi.Inspect || t == abi.Capture || t == abi.CaptureStop }

// reply is a response without its header: the structure's bytes with room for
// the header in front, and descriptors that the client gets copies of.
type reply struct {
	body []byte
	fds  []int
	done func() // after the response was sent or failed
}

// respond makes a reply of a response structure.
func respond[T any](v *T, fds ...int) reply { return reply{body: abi.Bytes(v), fds: fds} }

func (x *Session) answer(h abi.Header, r reply, err error) error {
	if r.done != nil {
		defer r.done()
	}
	h.Length, h.Status = uint32(abi.Size[abi.Header]()), 0
	out := abi.Bytes(&h)
	if err != nil {
		h.Status = int32(errnoOf(err))
		r.fds = nil
		if _, plain := err.(syscall.Errno); !plain { //nolint:errorlint // a bare errno needs no explanation
			x.s.Log.Warn("request refused", "client", x.name, "request", h.Type.String(), "error", err)
		}
	}
	if err == nil || errors.Is(err, errVersion) {
		if r.body != nil {
			h.Length = uint32(len(r.body))
			copy(r.body, abi.Bytes(&h))
			out = r.body
		}
	}
	var oob []byte
	if len(r.fds) > 0 {
		oob = unix.UnixRights(r.fds...)
	}
	_, _, err = x.conn.WriteMsgUnix(out, oob, nil)
	return err
}

// errnoOf is the errno that a refusal becomes.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EINVAL
}

// do runs fn on the engine's thread and waits for it.
func (x *Session) do(fn func()) {
	done := make(chan struct{})
	x.s.Engine.Do(func() {
		defer close(done)
		fn()
	})
	x.s.Wake()
	<-done
}

// created is when an object was made.
type created struct{ at clock.Time }

func (c *created) setCreated(at clock.Time) { c.at = at }

// add gives an object a handle that no live object of this client has; bill is
// what was taken for it. A connection request adds one on the engine's thread at
// any time, also while the session's goroutine looks another up: hence the lock.
// Deletions and walks happen on the engine's thread while the session's
// goroutine waits for them.
func (x *Session) add(v any, bill *amounts) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		x.next++
		if x.next == abi.NoHandle {
			continue
		}
		if _, taken := x.objects[x.next]; !taken {
			x.objects[x.next], x.bills[x.next] = v, bill
			if c, ok := v.(interface{ setCreated(clock.Time) }); ok {
				c.setCreated(x.s.Engine.Now())
			}
			return x.next
		}
	}
}

// remove forgets an object and gives back what it took; on the engine's thread.
func (x *Session) remove(handle uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if bill := x.bills[handle]; bill != nil {
		x.give(bill)
	}
	delete(x.objects, handle)
	delete(x.bills, handle)
}

// object finds a handle's object if it is of type T.
func object[T any](x *Session, handle uint32) (T, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v, ok := x.objects[handle].(T)
	if !ok {
		return v, syscall.ENOENT
	}
	return v, nil
}

// commandName is a client's name for logs, from bytes that it chose.
func commandName(b []byte, pid uint32) string {
	return fmt.Sprintf("%s[%d]", cString(b), pid)
}
