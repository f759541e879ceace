package injector

import (
	"sync"
	"sync/atomic"

	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Config has the functions that an Injector calls. A nil function is not called.
type Config struct {
	// CutLink takes a port's link down or brings it up, and then notifies programs. It is not called on a
	// worker's thread. If it is nil, the Injector notifies programs.
	CutLink func(dev int, cut bool)
	// Subnet carries out a statement with inject.Errors without waiting. With look it only
	// reports whether the named port exists: ENODEV or ENOTUNIQ if not.
	Subnet func(one *inject.Statement, look bool) error
	// Because records why an operation of a client has failed; on the worker's thread.
	Because func(x *control.Session, e *abi.TraceEvent, text string)
}

// Injector injects faults in one urdmad.
type Injector struct {
	Config
	server  *control.Server
	workers map[*control.Worker]*worker
	clients sync.Map        // *client by *control.Session, for sessions that have said HELLO
	made    atomic.Uint32   // number of the newest rule
	run     func(fn func()) // runs fn concurrently with the sessions
	scripts sync.Mutex      // one script at a time, so that nothing of a script follows when it was cleared
}

// Attach attaches an Injector to a server whose workers exist.
func Attach(s *control.Server, c Config) *Injector {
	n := newInjector(s, c)
	s.Attach(&control.Hooks{Came: n.came, Goes: n.goes, Before: n.before, Deliver: n.deliver, Refuse: n.refuse,
		Limits: n.limit, Making: n.making, Gone: n.gone},
		map[abi.Type]control.Request{abi.Inject: control.Answer(n.answer)})
	return n
}

func newInjector(s *control.Server, c Config) *Injector {
	n := &Injector{Config: c, server: s, workers: map[*control.Worker]*worker{}, run: s.Go}
	for _, w := range s.Workers {
		n.workers[w] = &worker{Worker: w, n: n, of: map[*qp.Client]*client{}}
	}
	return n
}

// client returns the session's client; nil before HELLO and once its end has begun.
func (n *Injector) client(x *control.Session) *client {
	if c, ok := n.clients.Load(x); ok {
		return c.(*client)
	}
	return nil
}

func (n *Injector) came(x *control.Session) {
	n.workers[x.Worker()].add(&client{x: x, qp: &x.Client().Client})
}

func (n *Injector) goes(x *control.Session) {
	if c := n.client(x); c != nil {
		c.w.remove(c)
	}
}

func (n *Injector) before(x *control.Session, t abi.Type) error {
	if c := n.client(x); c != nil && c.calls.Load() {
		return c.call(t)
	}
	return nil
}

func (n *Injector) limit(x *control.Session, d *abi.Device) {
	if c := n.client(x); c != nil && c.limits != nil {
		c.limits.Lower(d)
	}
}

func (n *Injector) making(x *control.Session, v any) {
	c := n.client(x)
	if c == nil {
		return
	}
	switch v := v.(type) {
	case *qp.QP:
		v.QPN = reused(c, &c.freedQPN)
	case *mem.Region:
		v.STag = reused(c, &c.freedSTag)
	}
}

func (n *Injector) gone(x *control.Session, v any) {
	c := n.client(x)
	if c == nil {
		return
	}
	switch v := v.(type) {
	case *qp.QP:
		c.freedQPN = v.QPN
		delete(c.writes, v)
		c.w.endThoseOf(v.QPN)
	case *qp.CQ:
		c.forgetQueue(v)
	case *mem.Region:
		c.freedSTag = v.STag
	case *events.Socket:
		c.forget(v)
	}
}
