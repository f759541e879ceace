package control

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine"
	"urdma/verbs/abi"
)

// This file is where features are attached that clients do without: urdmad/attach has them.
// Without any of them everything else works.

// Hooks are what a feature is told, and what it decides. A function that is nil is not
// called. Each runs on the thread of the client's worker, if nothing else is said.
type Hooks struct {
	// Came and Goes tell of a client: it has said HELLO, or is about to lose its objects.
	Came, Goes func(x *Session)
	// Ended tells that a connection is over, whether it was a client's or not; on the
	// session's goroutine.
	Ended func(x *Session)
	// Before may refuse a client's request before it is looked at, or have it wait; on the
	// session's goroutine.
	Before func(x *Session, t abi.Type) error
	// Answered tells of a client's request that was answered; on the session's goroutine.
	Answered func(x *Session, a *Answered)
	// Deliver tells of an rdma_cm event for a channel, e, which is v for the client. It
	// reports whether the event is kept back: Send delivers it later.
	Deliver func(c *EventChannel, e *cm.Event, v *abi.CMEvent) (kept bool)
	// Refuse reports whether a peer's connection request is rejected before the program
	// hears of it.
	Refuse func(x *Session, peer netip.AddrPort) bool
	// Limits may lower what a device can do for a client; on the session's goroutine.
	Limits func(x *Session, d *abi.Device)
	// Making may give what is about to have a number, a *qp.QP or *mem.Region, a number of
	// its choice. Gone tells of one that has lost its number, and of an *EventChannel or
	// *qp.CQ that was destroyed; of those that went after Goes it may tell or not.
	Making, Gone func(x *Session, v any)
	// Link tells that port dev's link came up or went down; on the first worker's thread.
	Link func(dev int, up bool)
}

// Answered is a request that was answered.
type Answered struct {
	Type  abi.Type
	For   Object // whose handle it begins with; nil: none's
	Begun time.Time
	Err   error // why it was refused; nil: it was not
}

// A Request answers one kind of message, whose bytes are b.
type Request = handler

// Answer makes a Request of a function.
func Answer[M any](answer func(x *Session, m *M, r *Reply) error) Request {
	return func(x *Session, b []byte, r *Reply) error {
		m, ok := abi.Decode[M](b)
		if !ok {
			return fmt.Errorf("control: message has %d bytes, expected %d: %w", len(b), abi.Size[M](), syscall.EINVAL)
		}
		return answer(x, &m, r)
	}
}

// RespondText makes a reply of a text, which the client gets in a file.
func RespondText(file string, text []byte) (Reply, error) {
	fd, err := memfd.Text(file, text)
	if err != nil {
		return Reply{}, err
	}
	r := Respond(&abi.InspectResponse{Bytes: uint64(len(text))}, fd)
	r.Done = func() { _ = unix.Close(fd) } // the client has its copy
	return r, nil
}

// Attach attaches a feature, and has it answer requests of some types; before Serve.
func (s *Server) Attach(h *Hooks, requests map[abi.Type]Request) {
	s.hooks = append(s.hooks, h)
	if s.requests == nil {
		s.requests = map[abi.Type]Request{}
	}
	for t, r := range requests {
		s.requests[t] = r
	}
}

func (s *Server) came(x *Session) {
	for _, h := range s.hooks {
		if h.Came != nil {
			h.Came(x)
		}
	}
}

func (s *Server) goes(x *Session) {
	for _, h := range s.hooks {
		if h.Goes != nil {
			h.Goes(x)
		}
	}
}

func (s *Server) over(x *Session) {
	for _, h := range s.hooks {
		if h.Ended != nil {
			h.Ended(x)
		}
	}
}

func (s *Server) before(x *Session, t abi.Type) error {
	for _, h := range s.hooks {
		if h.Before != nil {
			if err := h.Before(x, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) answered(x *Session, a *Answered) {
	for _, h := range s.hooks {
		if h.Answered != nil {
			h.Answered(x, a)
		}
	}
}

func (s *Server) keepsBack(c *EventChannel, e *cm.Event, v *abi.CMEvent) (kept bool) {
	for _, h := range s.hooks { // all are told
		if h.Deliver != nil && h.Deliver(c, e, v) {
			kept = true
		}
	}
	return kept
}

func (s *Server) refuses(x *Session, peer netip.AddrPort) bool {
	for _, h := range s.hooks {
		if h.Refuse != nil && h.Refuse(x, peer) {
			return true
		}
	}
	return false
}

func (s *Server) limit(x *Session, d *abi.Device) {
	for _, h := range s.hooks {
		if h.Limits != nil {
			h.Limits(x, d)
		}
	}
}

func (s *Server) making(x *Session, v any) {
	for _, h := range s.hooks {
		if h.Making != nil {
			h.Making(x, v)
		}
	}
}

func (s *Server) gone(x *Session, v any) {
	for _, h := range s.hooks {
		if h.Gone != nil {
			h.Gone(x, v)
		}
	}
}

func (s *Server) linkChanged(dev int, up bool) {
	for _, h := range s.hooks {
		if h.Link != nil {
			h.Link(dev, up)
		}
	}
}

// What features see of sessions, workers and objects.

// ID is the client's number, which no other client of this urdmad has had.
func (x *Session) ID() uint64 { return x.id }

// Name is what log lines call the client.
func (x *Session) Name() string { return x.name }

// Client is the client as its worker has it; nil before HELLO.
func (x *Session) Client() *engine.Client { return x.client }

// Worker is the client's.
func (x *Session) Worker() *Worker { return x.w }

// Server is the one that serves the session.
func (x *Session) Server() *Server { return x.s }

// Ready reports whether the client has said HELLO; on the session's goroutine.
func (x *Session) Ready() bool { return x.ready }

// Opened reports whether the client has the device open whose first port is dev; on the
// worker's thread.
func (x *Session) Opened(dev int) bool {
	return slices.ContainsFunc(x.contexts, func(c *Context) bool { return c.Dev == dev })
}

// Gone reports whether the client's objects are being removed: nobody else may look at
// them; on the worker's thread.
func (x *Session) Gone() bool { return x.ended }

// Objects iterates over all that the session has made, which may come and go meanwhile; on the
// worker's thread. A value is an Object.
func (x *Session) Objects() *reflect.MapIter { return reflect.ValueOf(x.objects).MapRange() }

// HangUp ends the client: what it had goes as if it had ended itself.
func (x *Session) HangUp() { x.conn.Close() }

// Become has serve take the connection over once the request at hand is answered, and the session end
// with it. It must not have said HELLO.
func (x *Session) Become(serve func() error) error {
	if x.ready || x.becomes != nil {
		return fmt.Errorf("control: the session is in other use: %w", syscall.EBUSY)
	}
	x.s.served(x)
	x.becomes = serve
	return nil
}

// Clients are those that have said HELLO; on the worker's thread.
func (w *Worker) Clients() []*Session { return w.attached }

// Info is what all objects have.
type Info struct {
	Session *Session
	Handle  uint32
	Made    clock.Time
}

// Info tells of an object.
func (o *object) Info() Info { return Info{o.x, o.handle, o.at} }

// Pairs is how many queue pairs a device has, whose first port this is.
func (d *Device) Pairs() int { return d.pairs.Len() }

// Send delivers an event to the channel's client; on the worker's thread.
func (c *EventChannel) Send(v *abi.CMEvent) { c.x.w.Engine.QPs.Events.Send(c.Socket, abi.Bytes(v)) }
