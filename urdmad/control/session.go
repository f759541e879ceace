package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Session is one client's connection and everything it owns.
type Session struct {
	account.Account
	conn
	s      *Server
	w      *Worker // the client's, from HELLO to the end; before the first
	id     uint64
	name   string
	client *engine.Client
	space  *mem.Space

	mu      sync.Mutex // guards objects and next, see add
	objects map[uint32]Object
	next    uint32
	made    []uint32 // by the requests of the batch under way

	bells    *memfd.Shared
	pool     *memfd.Pool // nil: each queue has a file of its own
	kick     int         // our end of the kick socket, -1 none
	ready    bool
	greeted  bool          // clientAmounts are taken
	asked    atomic.Bool   // has made a request
	ended    bool          // cleanUp has begun; engine thread
	over     chan struct{} // closed after cleanUp
	fallback bool          // oneFallback is taken
	contexts []*Context    // also in objects; engine thread
	unread   events.Quota  // what the client has not read; engine thread
	becomes  func() error  // what the connection is from now on; nil: a session
}

func newSession(s *Server, c *net.UnixConn) *Session {
	x := &Session{s: s, w: s.Workers[0], id: s.nextID.Add(1), name: "new client", objects: map[uint32]Object{}, kick: -1, over: make(chan struct{})}
	x.Owner.Learn(c)
	x.Join(&s.Accounts)
	x.conn = newConn(c, x.Closer())
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
		if x.becomes != nil {
			return x.becomes()
		}
	}
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
	if !x.ready && h.Type != abi.Hello && h.Type.Way() != abi.Looks {
		return fmt.Errorf("control: first message has type %d, expected HELLO (%d)", h.Type, abi.Hello)
	}
	r := Reply{}
	err := x.dispatch(h.Type, b, &r)
	return x.answer(h, r, err)
}

// reply is a response without its header: the structure's bytes with room for
// the header in front, and descriptors that the client gets copies of.
type Reply struct {
	Body []byte
	FDs  []int
	Done func() // after the response was sent or failed
	of   Object // whose handle the request began with; nil: none's
}

// respond makes a reply of a response structure.
func Respond[T any](v *T, fds ...int) Reply { return Reply{Body: abi.Bytes(v), FDs: fds} }

func (x *Session) answer(h abi.Header, r Reply, err error) error {
	if r.Done != nil {
		defer r.Done()
	}
	h.Length, h.Status = uint32(abi.Size[abi.Header]()), 0
	out := abi.Bytes(&h)
	if err != nil {
		h.Status = int32(ErrnoOf(err))
		r.FDs = nil
		x.logRefused(h.Type, err)
	}
	if err == nil || errors.Is(err, errVersion) {
		if r.Body != nil {
			h.Length = uint32(len(r.Body))
			copy(r.Body, abi.Bytes(&h))
			out = r.Body
		}
	}
	var oob []byte
	if len(r.FDs) > 0 {
		oob = unix.UnixRights(r.FDs...)
	}
	_, _, err = x.conn.WriteMsgUnix(out, oob, nil)
	return err
}

// attach has a client count that has said HELLO; on the engine's thread.
func (w *Worker) attach(x *Session) {
	if w.byClient == nil {
		w.byClient = map[*qp.Client]*Session{}
	}
	w.attached, w.byClient[&x.client.Client] = append(w.attached, x), x
	x.s.came(x)
}

// detach undoes attach, of a client that ends. An XRC target of its may be there still.
func (w *Worker) detach(x *Session) {
	w.attached = slices.DeleteFunc(w.attached, func(y *Session) bool { return y == x })
	delete(w.byClient, &x.client.Client)
}

// session is the session of a client, or nil.
func (w *Worker) SessionOf(c *qp.Client) *Session { return w.byClient[c] }

// logRefused logs why a request was refused. That something is in use is no news: programs
// that end destroy what they have in any order, and Linux's drivers answer EBUSY, too.
func (x *Session) logRefused(t abi.Type, err error) {
	if _, plain := err.(syscall.Errno); plain { //nolint:errorlint // a bare errno needs no explanation
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, syscall.EBUSY) {
		level = slog.LevelDebug
	}
	x.s.Log.Log(context.Background(), level, "request refused", "client", x.name, "request", t.String(), "error", err)
}

// do runs fn where the engine runs and waits for it: here, if its worker sleeps. fn
// waits for nothing.
func (x *Session) Do(fn func()) { x.w.Do(fn) }

func (w *Worker) Do(fn func()) {
	if w.Borrow == nil || !w.Borrow(fn) {
		w.turn(fn)
	}
}

// turn runs fn in a turn of the worker and waits for it: awake for a moment, since a
// worker that is awake gets there sooner than a thread is woken.
func (w *Worker) turn(fn func()) {
	var finished atomic.Bool
	done := make(chan struct{})
	w.Engine.Do(func() {
		defer close(done)
		fn()
		finished.Store(true)
	})
	w.Wake()
	for start := time.Now(); !finished.Load(); {
		if time.Since(start) > turnSpinTime {
			<-done
			return
		}
	}
}

// InTurns runs step on the worker's thread, once a turn as long as it wants more, and
// then done. It does not wait.
func (w *Worker) InTurns(step func() (more bool), done func()) {
	var turn func()
	turn = func() {
		more := false
		defer func() {
			if !more {
				done() // also if the step faulted
			}
		}()
		if more = step(); more {
			w.Engine.Do(turn) // in the next turn: packets come first
		}
	}
	w.Engine.Do(turn)
	w.Wake()
}

// turns is InTurns, and waits until the last.
func (w *Worker) turns(step func() (more bool)) {
	done := make(chan struct{})
	w.InTurns(step, func() { close(done) })
	<-done
}

// turnSpinTime is how long a turn is waited for awake.
const turnSpinTime = 20 * time.Microsecond
