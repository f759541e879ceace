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

// Session is one client's connection and its objects.
type Session struct {
	account.Account
	conn
	s      *Server
	w      *Worker // the client's worker from HELLO on; before that the first worker
	id     uint64
	name   string
	client *engine.Client
	space  *mem.Space

	mu      sync.Mutex // guards objects, next and made; see add
	objects map[uint32]Object
	next    uint32
	made    []uint32 // handles made by the current batch

	bells    *memfd.Shared
	pool     *memfd.Pool // nil: each queue has a file of its own
	kick     int         // our end of the kick socket; -1: none
	ready    bool
	greeted  bool          // clientAmounts have been taken
	asked    atomic.Bool   // the client has sent a request
	ended    bool          // cleanUp has begun; engine thread
	over     chan struct{} // closed after cleanUp
	fallback bool          // oneFallback has been taken
	contexts []*Context    // also in objects; engine thread
	unread   events.Quota  // events that the client has not read; engine thread
	becomes  func() error  // serves the connection after this request; nil: the session goes on

	// Memory for the current request, which otherwise each request would allocate; session's goroutine only.
	limits  abi.Device // see most
	reply   Reply      // to the request
	part    Reply      // to a request of a batch
	batched []byte     // the response to a batch
}

func newSession(s *Server, c *net.UnixConn) *Session {
	x := &Session{s: s, w: s.Workers[0], id: s.nextID.Add(1), name: "new client", objects: map[uint32]Object{}, kick: -1,
		over: make(chan struct{})}
	x.Owner.Learn(c)
	x.Join(&s.Accounts)
	x.conn = newConn(c, x.Closer())
	// fails only for a closed socket, which ends the session anyway
	_ = c.SetReadDeadline(time.Now().Add(firstRequestTime))
	return x
}

// run answers requests until the client hangs up or violates the protocol.
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
		if x.becomes != nil { // also if the answer is lost: what was taken is given back there
			return errors.Join(err, x.becomes())
		}
		if err != nil {
			return err
		}
	}
}

// request answers one message. An error ends the session; mistakes that a client can make are
// answered with an errno value instead.
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
	x.reply = Reply{}
	err := x.dispatch(h.Type, b, &x.reply)
	return x.answer(h, &x.reply, err)
}

// Reply is a response without its header: the bytes of the structure, with room for the header in
// front, and descriptors that the client gets copies of.
type Reply struct {
	Body []byte
	FDs  []int
	Done func() // called after the response was sent or sending failed
	of   Object // object whose handle the request began with; nil: none
}

// Respond returns a reply with a response structure.
func Respond[T any](v *T, fds ...int) Reply { return Reply{Body: abi.Bytes(v), FDs: fds} }

func (x *Session) answer(h abi.Header, r *Reply, err error) error {
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

// attach adds a client that has said HELLO; on the engine's thread.
func (w *Worker) attach(x *Session) {
	if w.byClient == nil {
		w.byClient = map[*qp.Client]*Session{}
	}
	w.attached, w.byClient[&x.client.Client] = append(w.attached, x), x
	x.s.came(x)
}

// detach undoes attach for a client that ends. A target queue pair of the client's may still
// exist.
func (w *Worker) detach(x *Session) {
	w.attached = slices.DeleteFunc(w.attached, func(y *Session) bool { return y == x })
	delete(w.byClient, &x.client.Client)
}

// SessionOf returns the session of a client, or nil.
func (w *Worker) SessionOf(c *qp.Client) *Session { return w.byClient[c] }

// logRefused logs why a request was refused. EBUSY is logged at debug level only: programs that
// end destroy objects in any order, and Linux's drivers answer EBUSY too.
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

// Do runs fn on the engine's thread and waits for it. If the worker sleeps, fn runs on this
// goroutine instead. fn must not block.
func (x *Session) Do(fn func()) { x.w.Do(fn) }

func (w *Worker) Do(fn func()) {
	if w.Borrow == nil || !w.Borrow(fn) {
		w.turn(fn)
	}
}

// turn runs fn in a turn of the worker and waits for it. It polls for a short time first, because
// an awake worker is done sooner than a thread can be woken.
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

// InTurns runs step on the worker's thread, once per turn until it returns false, and then done.
// It does not wait.
func (w *Worker) InTurns(step func() (more bool), done func()) {
	var turn func()
	turn = func() {
		more := false
		defer func() {
			if !more {
				done() // also after a fault in step
			}
		}()
		if more = step(); more {
			w.Engine.Do(turn) // in the next turn, after packets
		}
	}
	w.Engine.Do(turn)
	w.Wake()
}

// turns is InTurns, but waits for the last step.
func (w *Worker) turns(step func() (more bool)) {
	done := make(chan struct{})
	w.InTurns(step, func() { close(done) })
	<-done
}

// turnSpinTime is how long turn polls before it sleeps.
const turnSpinTime = 20 * time.Microsecond
