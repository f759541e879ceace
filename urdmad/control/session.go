package control

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/control/process"
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

	mu      sync.Mutex // guards objects, next and made; see Add
	objects map[uint32]Object
	next    uint32
	made    []uint32 // handles made by the current batch

	bells    *memfd.Shared
	pool     *memfd.Pool // nil: each queue has a file of its own
	kick     int         // our end of the kick socket; -1: none
	ready    bool
	greeted  bool              // clientAmounts have been taken
	asked    atomic.Bool       // the client has sent a request
	ended    bool              // cleanUp has begun; engine thread
	over     chan struct{}     // closed after cleanUp
	fallback bool              // oneFallback has been taken
	mappings *process.Mappings // nil until memory is registered for on-demand paging
	Openings []*Opening        // engine thread
	unread   events.Quota      // events that the client has not read; engine thread
	becomes  func() error      // serves the connection after this request; nil: the session goes on

	// Memory for the current request, which otherwise each request would allocate; session's goroutine only.
	limits  abi.Device // see Limits
	reply   Reply      // to the request
	part    Reply      // to a request of a batch
	batched []byte     // the response to a batch
}

// Opening is a device that a client has open.
type Opening struct {
	Dev   int            // its first port's number
	Async *events.Socket // gets the events of its ports
}

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

// Do is Do of the client's worker.
func (x *Session) Do(fn func()) { x.w.Do(fn) }

// ID returns the client's number, unique in this urdmad's life.
func (x *Session) ID() uint64 { return x.id }

// Name returns the client's name in log lines.
func (x *Session) Name() string { return x.name }

// Client returns the engine's client; nil before HELLO.
func (x *Session) Client() *engine.Client { return x.client }

// Worker returns the worker that serves the client.
func (x *Session) Worker() *Worker { return x.w }

// Server returns the server of the session.
func (x *Session) Server() *Server { return x.s }

// Ready reports whether the client has said HELLO; on the session's goroutine.
func (x *Session) Ready() bool { return x.ready }

// Opened reports whether the client has opened the device whose first port is dev; on the
// worker's thread.
func (x *Session) Opened(dev int) bool {
	return slices.ContainsFunc(x.Openings, func(o *Opening) bool { return o.Dev == dev })
}

// Gone reports whether the client's objects are being removed, so that they must not be used; on
// the worker's thread.
func (x *Session) Gone() bool { return x.ended }

// Objects iterates over all objects of the session, which may come and go meanwhile; on the
// worker's thread. Each value is an Object.
func (x *Session) Objects() *reflect.MapIter { return reflect.ValueOf(x.objects).MapRange() }

// Over is closed when the client's objects have been removed.
func (x *Session) Over() <-chan struct{} { return x.over }

// HangUp disconnects the client. Its objects are removed as if the client had ended.
func (x *Session) HangUp() { x.conn.Close() }

const (
	// The first lastTurns turns follow each other without a pause, however long they take: one
	// fetches the posts, one sends them, one sees the result. Later turns come a little
	// apart, because a port may be full, and a peer's acknowledgement takes time.
	lastTurns = 3
	lastPause = 50 * time.Microsecond
)

// SendLast waits until queue pairs that are about to be removed have sent their client's last
// posts, that is, until left (qp.QP.SendLast) returns false. Posts that cannot leave within
// qp.LastSendTimeout are lost. The client's memory stays mapped meanwhile, even if the process
// has ended.
func (x *Session) SendLast(left func() bool) {
	more := true
	for n, begun := 0, time.Now(); more && (n < lastTurns || time.Since(begun) < time.Duration(qp.LastSendTimeout)); n++ {
		if n >= lastTurns {
			time.Sleep(lastPause)
		}
		x.Do(func() { more = left() })
	}
}
