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

// This file has the interface through which features attach. Features are in urdmad/attach;
// everything else works without them.

// Hooks are the functions of a feature that are called on events or to decide something. A nil
// function is not called. Each runs on the thread of the client's worker, unless its comment says
// otherwise.
type Hooks struct {
	// Came is called when a client has said HELLO, Goes when it is about to lose its objects.
	Came, Goes func(x *Session)
	// Ended is called when a connection is over, whether or not it said HELLO; on the session's
	// goroutine.
	Ended func(x *Session)
	// Before is called before a client's request is looked at, and may refuse or delay it; on the
	// session's goroutine.
	Before func(x *Session, t abi.Type) error
	// Answered is called when a client's request was answered; on the session's goroutine.
	Answered func(x *Session, a Answered)
	// Deliver is called for each rdma_cm event e of a channel; v is the event in the client's
	// form, valid until Deliver returns. It reports whether the feature keeps a copy of it back, to
	// send it later by Send.
	Deliver func(c *EventChannel, e *cm.Event, v *abi.CMEvent) (kept bool)
	// Refuse reports whether to reject a peer's connection request before the program gets it.
	Refuse func(x *Session, peer netip.AddrPort) bool
	// Limits may lower the device limits that a client sees; on the session's goroutine.
	Limits func(x *Session, d *abi.Device)
	// Making is called for a *qp.QP or *mem.Region that is about to get a number, and may choose
	// the number. Gone is called for one that has lost its number, and for a destroyed
	// *EventChannel or *qp.CQ. For objects removed after Goes, Gone may not be called.
	Making, Gone func(x *Session, v any)
	// Link is called when port dev's link has come up or gone down; on the first worker's thread.
	Link func(dev int, up bool)
}

// Answered describes a request that was answered.
type Answered struct {
	Type  abi.Type
	For   Object // the object whose handle the request begins with; nil: none
	Begun time.Time
	Err   error // why it was refused; nil: it succeeded
}

// Request answers one type of message; b has the message's bytes.
type Request = handler

// Answer turns a function into a Request.
func Answer[M any](answer func(x *Session, m *M, r *Reply) error) Request {
	return func(x *Session, b []byte, r *Reply) error {
		m, ok := abi.Decode[M](b)
		if !ok {
			return fmt.Errorf("control: message has %d bytes, expected %d: %w", len(b), abi.Size[M](), syscall.EINVAL)
		}
		return answer(x, &m, r)
	}
}

// RespondText returns a reply that hands the client a text in a file.
func RespondText(file string, text []byte) (Reply, error) {
	fd, err := memfd.Text(file, text)
	if err != nil {
		return Reply{}, err
	}
	r := Respond(&abi.InspectResponse{Bytes: uint64(len(text))}, fd)
	r.Done = func() { _ = unix.Close(fd) } // the client has its copy
	return r, nil
}

// Attach attaches a feature, which also answers the given types of requests. It must be called
// before Serve.
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

func (s *Server) answered(x *Session, a Answered) {
	for _, h := range s.hooks {
		if h.Answered != nil {
			h.Answered(x, a)
		}
	}
}

func (s *Server) keepsBack(c *EventChannel, e *cm.Event, v *abi.CMEvent) (kept bool) {
	for _, h := range s.hooks { // call all, even after one has kept the event
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

// Accessors for features.

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
	return slices.ContainsFunc(x.contexts, func(c *Context) bool { return c.Dev == dev })
}

// Gone reports whether the client's objects are being removed, so that they must not be used; on
// the worker's thread.
func (x *Session) Gone() bool { return x.ended }

// Objects iterates over all objects of the session, which may come and go meanwhile; on the
// worker's thread. Each value is an Object.
func (x *Session) Objects() *reflect.MapIter { return reflect.ValueOf(x.objects).MapRange() }

// HangUp disconnects the client. Its objects are removed as if the client had ended.
func (x *Session) HangUp() { x.conn.Close() }

// Become makes serve take over the connection once the current request is answered; the session
// ends with it. The client must not have said HELLO.
func (x *Session) Become(serve func() error) error {
	if x.ready || x.becomes != nil {
		return fmt.Errorf("control: the session is in other use: %w", syscall.EBUSY)
	}
	x.s.served(x)
	x.becomes = serve
	return nil
}

// Clients returns the clients that have said HELLO; on the worker's thread.
func (w *Worker) Clients() []*Session { return w.attached }

// Info has the fields common to all objects.
type Info struct {
	Session *Session
	Handle  uint32
	Made    clock.Time
}

// Info returns the common fields of an object.
func (o *object) Info() Info { return Info{o.x, o.handle, o.at} }

// Pairs returns the number of queue pairs of a device. d must be the device's first port.
func (d *Device) Pairs() int { return d.pairs.Len() }

// Send delivers an event to the channel's client; on the worker's thread.
func (c *EventChannel) Send(v *abi.CMEvent) { c.x.w.Engine.QPs.Events.Send(c.Socket, abi.Bytes(v)) }
