package enginetest

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/verbs/abi"
)

// NewID makes an rdma_cm id.
func (c *Client) NewID() (id *cm.ID) {
	c.Host.Do(func() { id = c.Host.CM.Create(c, c) })
	c.Adopt(id)
	return id
}

// Adopt implements cm.Owner.
func (c *Client) Adopt(id *cm.ID) bool {
	c.ids = append(c.ids, id)
	return true
}

// TakeSocket counts a socket of the client's ids over TCP, as control does.
func (c *Client) TakeSocket() error {
	if c.MaxSockets > 0 && c.Sockets == c.MaxSockets {
		return syscall.ENOMEM
	}
	c.Sockets++
	return nil
}

// GiveSocket undoes one TakeSocket.
func (c *Client) GiveSocket() { c.Sockets-- }

// Deliver implements cm.Channel.
func (c *Client) Deliver(e *cm.Event) {
	ev := *e
	ev.Param.PrivateData = bytes.Clone(e.Param.PrivateData)
	c.seen = append(c.seen, ev)
}

// Event waits for the client's next rdma_cm event, which must be of a kind.
func (c *Client) Event(kind cm.EventKind, within time.Duration) cm.Event {
	c.Host.World.T.Helper()
	ev := c.Any(within)
	if ev.Kind != kind {
		c.Host.World.T.Fatalf("client %s: rdma_cm event %v (%v), expected %v", c.E.Name, ev.Kind, ev.Err, kind)
	}
	return ev
}

// Any waits for the next rdma_cm event of any kind.
func (c *Client) Any(within time.Duration) cm.Event {
	c.Host.World.T.Helper()
	c.Host.World.Until("rdma_cm event", within, func() bool { return len(c.seen) > 0 })
	ev := c.seen[0]
	c.seen = c.seen[1:]
	return ev
}

// Next returns the next rdma_cm event, if one has come.
func (c *Client) Next() (ev cm.Event, ok bool) {
	if len(c.seen) == 0 {
		return ev, false
	}
	ev, c.seen = c.seen[0], c.seen[1:]
	return ev, true
}

// DrainEvents drops the rdma_cm events that have come.
func (c *Client) DrainEvents() { c.seen = nil }

// NoEvent checks that no rdma_cm event waits.
func (c *Client) NoEvent() {
	c.Host.World.T.Helper()
	if len(c.seen) > 0 {
		c.Host.World.T.Fatalf("client %s: unexpected rdma_cm event %v", c.E.Name, c.seen[0].Kind)
	}
}

// At returns a socket address.
func At(ip netip.Addr, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(ip, port)
}

// Listen listens on a port number of the client's host.
func (c *Client) Listen(port uint16, backlog int) *cm.ID {
	c.Host.World.T.Helper()
	return c.ListenAt(c.Host.Addr, port, backlog)
}

// ListenAt is Listen at a given address.
func (c *Client) ListenAt(ip netip.Addr, port uint16, backlog int) *cm.ID {
	c.Host.World.T.Helper()
	id := c.NewID()
	c.must(func() error {
		if err := c.Host.CM.Bind(id, At(ip, port)); err != nil {
			return err
		}
		return c.Host.CM.Listen(id, backlog)
	})
	return id
}

// Resolve returns an id with a route to a port number of a host.
func (c *Client) Resolve(ip netip.Addr, port uint16) *cm.ID {
	c.Host.World.T.Helper()
	return c.ResolveFrom(netip.IPv4Unspecified(), ip, port)
}

// ResolveFrom is Resolve from a given source address.
func (c *Client) ResolveFrom(src, ip netip.Addr, port uint16) *cm.ID {
	c.Host.World.T.Helper()
	id := c.NewID()
	c.must(func() error {
		return c.Host.CM.ResolveAddr(id, At(src, 0), At(ip, port), 2*clock.Second)
	})
	c.Event(cm.EventAddrResolved, 5*time.Second)
	c.must(func() error { return c.Host.CM.ResolveRoute(id) })
	c.Event(cm.EventRouteResolved, time.Second)
	return id
}

func (c *Client) must(fn func() error) {
	c.Host.World.T.Helper()
	var err error
	c.Host.Do(func() { err = fn() })
	if err != nil {
		c.Host.World.T.Fatalf("client %s: %v", c.E.Name, err)
	}
}

// Param returns connection parameters.
func Param(reads uint8, private string) *cm.Param {
	return &cm.Param{ResponderResources: reads, InitiatorDepth: reads, PrivateData: []byte(private)}
}

// Connect sends the connection request of an id.
func (c *Client) Connect(id *cm.ID, q *QP, p *cm.Param) {
	c.Host.World.T.Helper()
	c.must(func() error { return c.Host.CM.Connect(id, connect.QueuePair(q.Q), p) })
}

// Accept accepts the request for which an id was made.
func (c *Client) Accept(id *cm.ID, q *QP, p *cm.Param) *cm.ID {
	c.Host.World.T.Helper()
	c.must(func() error { return c.Host.CM.Accept(id, connect.QueuePair(q.Q), p) })
	return id
}

// Disconnect ends an id's connection.
func (c *Client) Disconnect(id *cm.ID) {
	c.must(func() error { return c.Host.CM.Disconnect(id) })
}

// Destroy destroys an id.
func (c *Client) Destroy(id *cm.ID) { c.Host.Do(func() { c.Host.CM.Destroy(id) }) }

var joined atomic.Uint32

// Join connects two queue pairs through rdma_cm and returns their ids.
func Join(a, b *QP, reads uint8) (*cm.ID, *cm.ID) {
	w := a.Client.Host.World
	w.T.Helper()
	port := uint16(7000 + w.Rand.IntN(1000))
	if w.opt.TCP {
		port = uint16(20000 + joined.Add(1)) // earlier worlds hold other numbers, and the tests of mpa those from 8000 on
	}
	at := b.Client.Host.Addr
	if w.opt.Loopback.IsValid() && a.Client.Host == b.Client.Host {
		at = w.opt.Loopback
	}
	l := b.Client.ListenAt(at, port, 8)
	param := func(private string) *cm.Param {
		p := Param(reads, private)
		p.RNRRetryCount = w.opt.RNRRetry
		return p
	}
	ida := a.Client.Resolve(at, port)
	a.Client.Connect(ida, a, param("hello"))
	ev := b.Client.genuine(cm.EventConnectRequest, "hello")
	idb := b.Client.Accept(ev.Child, b, param("welcome"))
	a.Client.Event(cm.EventEstablished, 10*time.Second)
	b.Client.genuine(cm.EventEstablished, "hello")
	b.Client.Destroy(l)
	return ida, idb
}

// genuine waits for an event of a server. While somebody attacks, requests may be
// forged from the numbers of one that was heard: those that don't carry the private
// data are refused.
func (c *Client) genuine(kind cm.EventKind, private string) cm.Event {
	c.Host.World.T.Helper()
	for {
		ev := c.Any(10 * time.Second)
		forged := ev.Kind == cm.EventConnectRequest && string(ev.Param.PrivateData) != private
		switch {
		case forged && c.Host.World.Intrude != nil:
			c.must(func() error { return c.Host.CM.Reject(ev.Child, nil) })
		case ev.Kind == kind:
			return ev
		default:
			c.Host.World.T.Fatalf("server %s: rdma_cm event %v (%v), expected %v", c.E.Name, ev.Kind, ev.Err, kind)
		}
	}
}

// Pair returns a connected pair of queue pairs on hosts A and B, or both on A if local, each with
// its own client.
func (w *World) Pair(local bool, c *abi.QPCap) (a, b *QP) {
	w.T.Helper()
	other := w.B
	if local {
		other = w.A
	}
	a, b = w.A.NewClient().NewQP(c), other.NewClient().NewQP(c)
	Join(a, b, 16)
	return a, b
}
