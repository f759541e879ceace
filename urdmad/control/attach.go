package control

import (
	"net/netip"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
)

// This file has the interface through which the objects of clients (package objects) and features
// attach. Features are in urdmad/attach; everything else works without them.

// Hooks are the functions of what attaches that are called on events or to decide something. A nil
// function is not called. Each runs on the thread of the client's worker, unless its comment says
// otherwise.
type Hooks struct {
	// Came is called when a client has said HELLO, Goes when it is about to lose its objects.
	Came, Goes func(x *Session)
	// Left is called when the client's objects have been removed, once a turn until it returns false.
	Left func(x *Session) (more bool)
	// Ended is called when a connection is over, whether or not it said HELLO; on the session's
	// goroutine.
	Ended func(x *Session)
	// Before is called before a client's request is looked at, and may refuse or delay it; on the
	// session's goroutine.
	Before func(x *Session, t abi.Type) error
	// Answered is called when a client's request was answered; on the session's goroutine.
	Answered func(x *Session, a Answered)
	// Deliver is called for each rdma_cm event e of an event channel, whose socket is to; v is the
	// event in the client's form, valid until Deliver returns. It reports whether the feature keeps
	// a copy of it back, to send it later.
	Deliver func(x *Session, to *events.Socket, e *cm.Event, v *abi.CMEvent) (kept bool)
	// Refuse reports whether to reject a peer's connection request before the program gets it.
	Refuse func(x *Session, peer netip.AddrPort) bool
	// Limits may lower the device limits that a client sees; on the session's goroutine.
	Limits func(x *Session, d *abi.Device)
	// Making is called for a *qp.QP or *mem.Region that is about to get a number, and may choose
	// the number. Gone is called for one that has lost its number, for a destroyed *qp.CQ, and for
	// the *events.Socket of a destroyed event channel. For objects removed after Goes, Gone may not be called.
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

// Attach attaches objects or a feature, which also answers the given types of requests. It must be called
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

func (s *Server) left(x *Session) (more bool) {
	for _, h := range s.hooks {
		if h.Left != nil && h.Left(x) {
			return true
		}
	}
	return false
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

// KeepsBack calls Deliver of all features.
func (s *Server) KeepsBack(x *Session, to *events.Socket, e *cm.Event, v *abi.CMEvent) (kept bool) {
	for _, h := range s.hooks { // call all, even after one has kept the event
		if h.Deliver != nil && h.Deliver(x, to, e, v) {
			kept = true
		}
	}
	return kept
}

// Refuses calls Refuse of the features until one returns true.
func (s *Server) Refuses(x *Session, peer netip.AddrPort) bool {
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

// Making calls Making of all features.
func (s *Server) Making(x *Session, v any) {
	for _, h := range s.hooks {
		if h.Making != nil {
			h.Making(x, v)
		}
	}
}

// Gone calls Gone of all features.
func (s *Server) Gone(x *Session, v any) {
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
