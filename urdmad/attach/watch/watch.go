// Package watch tells of what clients do and what happens to them: traces and captures, the
// flight recorder and its files, explanations of failures and warnings of mistakes.
//
// It attaches to a control.Server and, as qp.Watch, to each client: watch.go. events.go has
// what is told, capture.go and number.go which frames and events a capture gets. failure.go
// makes texts of failures, ended.go keeps those of clients that are gone, records.go writes
// them to files. explain.go and warn.go answer programs, show.go has what snapshots show.
//
// Nothing else depends on it: without it everything works as well, and tells numbers only.
package watch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/attach/tap"
	"urdma/urdmad/control"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Watch watches the clients of a server.
type Watch struct {
	Records *Records // nil: flight recorders are written nowhere
	// Why is what more there is to say of an rdma_cm event that tells of no connection, or "";
	// nil: nothing.
	Why func(x *control.Session, e *cm.Event) string

	s       *control.Server
	workers map[*control.Worker]*worker

	mu       sync.Mutex
	captures map[*control.Session][]*capture // by session, one for each worker
}

// worker is what is watched at a worker; its thread's.
type worker struct {
	*control.Worker
	tap      *tap.Tap
	clients  []*client
	captures []*capture // that run
	warned   uint64     // warnings of pitfalls, ever
	ended    []*ended   // clients, the oldest first
}

// client is what is watched of a client: qp.Watch. Its fields are its worker's thread's, if
// nothing else is said.
type client struct {
	watch    *Watch
	x        *control.Session
	w        *worker
	recorder recorder.Recorder
	traced   atomic.Bool // a capture wants its events; any goroutine may look

	record   *clock.Timer // writes the recorder to a file; nil: it never did
	recorded clock.Time   // when it did last
	recordOf string       // why it will; empty: it won't
}

// Attach has a server's clients watched, and flight recorders written to records; nil:
// nowhere. The server has its workers, and does not serve yet.
func Attach(s *control.Server, records *Records) *Watch {
	v := &Watch{Records: records, s: s, workers: map[*control.Worker]*worker{},
		captures: map[*control.Session][]*capture{}}
	for _, w := range s.Workers {
		v.workers[w] = &worker{Worker: w, tap: tap.New(w.Engine)}
	}
	s.Attach(&control.Hooks{Came: v.came, Goes: v.goes, Ended: v.endCapture, Answered: v.answered, Deliver: v.deliver,
		Link: v.linkChanged}, map[abi.Type]control.Request{
		abi.Capture:     control.Answer(v.capture),
		abi.CaptureStop: control.Answer(v.captureStop),
		abi.Mark:        control.Answer(v.mark),
		abi.Explain:     control.Answer(v.explain),
		abi.Warn:        control.Answer(v.warn),
	})
	return v
}

func (v *Watch) came(x *control.Session) {
	c := &client{watch: v, x: x, w: v.workers[x.Worker()]}
	c.w.clients = append(c.w.clients, c)
	x.Client().Watch = c
	c.traceIfAsked()
	c.seen(true)
}

func (v *Watch) goes(x *control.Session) {
	c := clientOf(x)
	if c == nil {
		return
	}
	c.seen(false)
	c.keep()
	c.recordEnd()
	c.w.clients = slices.DeleteFunc(c.w.clients, func(other *client) bool { return other == c })
	x.Client().Watch, x.Client().WatchAll = nil, false // an XRC target of its may be there still
}

// clientOf is what is watched of a session's client; nil: it has not said HELLO, or it is
// going. On the session's goroutine or the worker's thread.
func clientOf(x *control.Session) *client {
	if c := x.Client(); c != nil {
		return watcherOf(&c.Client)
	}
	return nil
}

func watcherOf(c *qp.Client) *client {
	w, _ := c.Watch.(*client)
	return w
}

// events copies what the client's recorder has, in no order.
func (c *client) events() []recorder.Event { return c.recorder.Events(c.w.wall()) }

// wall turns the worker's time into nanoseconds since 1970; on its thread.
func (w *worker) wall() func(clock.Time) int64 {
	now, at := time.Now(), w.Engine.Now()
	return func(t clock.Time) int64 { return now.Add(time.Duration(t - at)).UnixNano() }
}
