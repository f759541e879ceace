// Package watch observes clients: traces and captures, the flight recorder and its files,
// explanations of failures and warnings about mistakes.
//
// watch.go attaches it to a control.Server and, as qp.Watch, to each client. events.go collects
// events, capture.go and number.go select frames and events for a capture, handshake.go has it shown
// handshakes within urdmad. failure.go turns failures into text, ended.go keeps the events of ended
// clients, records.go writes files. explain.go and warn.go answer programs, show.go adds to snapshots.
//
// Nothing else depends on it: without it everything works, but failures are reported as numbers
// only.
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

// Watch observes the clients of a server.
type Watch struct {
	Records *Records // nil: flight recorders are not written to files
	// Why returns additional details about an rdma_cm event that reports a failed connection, or
	// ""; nil: none.
	Why func(x *control.Session, e *cm.Event) string

	s       *control.Server
	workers map[*control.Worker]*worker

	mu       sync.Mutex
	captures map[*control.Session][]*capture // by session, one for each worker
}

// worker is the state at one worker; it belongs to that worker's thread.
type worker struct {
	*control.Worker
	tap      *tap.Tap
	clients  []*client
	captures []*capture // active captures
	warned   uint64     // number of warnings so far
	ended    []*ended   // ended clients, oldest first
}

// client is the state for one client; it implements qp.Watch. Its fields belong to the worker's
// thread, except where noted.
type client struct {
	watch    *Watch
	x        *control.Session
	w        *worker
	recorder recorder.Recorder
	traced   atomic.Bool // a capture wants its events; for any goroutine

	record   *clock.Timer // writes the recorder to a file; nil: not used yet
	recorded clock.Time   // time of the last write
	recordOf string       // occasion of the next write; empty: none is scheduled
}

// Attach observes a server's clients, and writes flight recorders to records; nil: not to files.
// It must be called after the server's workers are made and before Serve.
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
	x.Client().Watch, x.Client().WatchAll = nil, false // an XRC target of the client may still exist
}

// clientOf returns the state of a session's client; nil before HELLO and once its end has begun.
// On the session's goroutine or the worker's thread.
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

// events returns the events of the client's recorder, unsorted.
func (c *client) events() []recorder.Event { return c.recorder.Events(c.w.wall()) }

// wall returns a function that converts the worker's time to nanoseconds since 1970; on its
// thread.
func (w *worker) wall() func(clock.Time) int64 {
	now, at := time.Now(), w.Engine.Now()
	return func(t clock.Time) int64 { return now.Add(time.Duration(t - at)).UnixNano() }
}
