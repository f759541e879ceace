package enginetest

import (
	"syscall"
	"time"

	"urdma/urdmad/cm"
	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

// NewID makes an rdma_cm id.
func (c *Client) NewID() (id *cm.ID) {
	c.handles++
	h := c.handles
	c.Host.Do(func() { id = c.Host.CM.Create(c, c.Channel, h, abi.PSTCP) })
	c.IDs[h] = id
	return id
}

// Event waits for the next rdma_cm event of the client, of a kind.
func (c *Client) Event(kind uint32, within time.Duration) abi.CMEvent {
	w := c.Host.World
	w.T.Helper()
	w.Until("rdma_cm event", within, func() bool { return c.peek() })
	ev := c.seen[0]
	c.seen = c.seen[1:]
	if ev.Event != kind {
		w.T.Fatalf("client %s: rdma_cm event %d (status %d), expected %d", c.E.Name, ev.Event, ev.Status, kind)
	}
	return ev
}

func (c *Client) peek() bool {
	for {
		ev, ok := read[abi.CMEvent](c.events)
		if !ok {
			return len(c.seen) > 0
		}
		c.seen = append(c.seen, ev)
	}
}

// DrainEvents throws the rdma_cm events away that have come.
func (c *Client) DrainEvents() {
	c.peek()
	c.seen = nil
}

// NoEvent checks that no rdma_cm event waits.
func (c *Client) NoEvent() {
	c.Host.World.T.Helper()
	if c.peek() {
		c.Host.World.T.Fatalf("client %s: unexpected rdma_cm event %+v", c.E.Name, c.seen[0].Event)
	}
}

// Listen listens on a port number of the client's host.
func (c *Client) Listen(port uint16, backlog int) *cm.ID {
	id := c.NewID()
	var err error
	c.Host.Do(func() {
		if err = c.Host.CM.Bind(id, abi.AddrFrom4(c.Host.IP, port)); err == nil {
			err = c.Host.CM.Listen(id, backlog)
		}
	})
	if err != nil {
		c.Host.World.T.Fatalf("listen: %v", err)
	}
	return id
}

// Resolve makes an id that has a route to a port of a host.
func (c *Client) Resolve(ip wire.IPv4, port uint16) *cm.ID {
	w := c.Host.World
	w.T.Helper()
	id := c.NewID()
	c.must(func() error {
		return c.Host.CM.ResolveAddr(id, abi.Addr{}, abi.AddrFrom4(ip, port), engine.Time(2e9))
	})
	c.Event(abi.CMAddrResolved, 5*time.Second)
	c.must(func() error { return c.Host.CM.ResolveRoute(id) })
	c.Event(abi.CMRouteResolved, time.Second)
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

// Param makes connection parameters.
func Param(reads uint8, private string) *abi.CMParam {
	p := &abi.CMParam{ResponderResources: reads, InitiatorDepth: reads}
	p.SetPrivate([]byte(private))
	return p
}

// Connect sends the request of an id.
func (c *Client) Connect(id *cm.ID, q *QP, p *abi.CMParam) {
	c.Host.World.T.Helper()
	c.must(func() error { return c.Host.CM.Connect(id, q.Q, p) })
}

// Accept accepts the request that made an id.
func (c *Client) Accept(child uint32, q *QP, p *abi.CMParam) *cm.ID {
	c.Host.World.T.Helper()
	id := c.IDs[child]
	c.must(func() error { return c.Host.CM.Accept(id, q.Q, p) })
	return id
}

// Disconnect ends an id's connection.
func (c *Client) Disconnect(id *cm.ID) {
	c.must(func() error { return c.Host.CM.Disconnect(id) })
}

// Destroy forgets an id.
func (c *Client) Destroy(id *cm.ID) { c.Host.Do(func() { c.Host.CM.Destroy(id) }) }

// Join connects two queue pairs through rdma_cm and returns their ids.
func Join(a, b *QP, reads uint8) (*cm.ID, *cm.ID) {
	w := a.Client.Host.World
	w.T.Helper()
	port := uint16(7000 + w.Rand.IntN(1000))
	l := b.Client.Listen(port, 8)
	param := func(private string) *abi.CMParam {
		p := Param(reads, private)
		p.RNRRetryCount = w.opt.RNRRetry
		return p
	}
	ida := a.Client.Resolve(b.Client.Host.IP, port)
	a.Client.Connect(ida, a, param("hello"))
	ev := b.Client.Event(abi.CMConnectRequest, 10*time.Second)
	idb := b.Client.Accept(ev.Child, b, param("welcome"))
	a.Client.Event(abi.CMEstablished, 10*time.Second)
	b.Client.Event(abi.CMEstablished, 10*time.Second)
	b.Client.Destroy(l)
	return ida, idb
}

// Pair makes a connected pair of queue pairs on hosts A and B, or with local
// both on A, each with a client of its own.
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

// ErrnoOf is the errno of a refusal.
func ErrnoOf(err error) syscall.Errno { return errno(err) }

// Any waits for the next rdma_cm event of any kind.
func (c *Client) Any(within time.Duration) abi.CMEvent {
	c.Host.World.T.Helper()
	c.Host.World.Until("rdma_cm event", within, c.peek)
	ev := c.seen[0]
	c.seen = c.seen[1:]
	return ev
}
