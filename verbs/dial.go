package verbs

import (
	"context"
	"fmt"
	"net/netip"

	"urdma/verbs/abi"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
)

// Dial connects to "host:port" and returns when the peer has accepted (rdma_resolve_addr(3),
// rdma_resolve_route(3), rdma_connect(3)). Host is an address (IPv6 in brackets) or a name. If the peer
// rejects the connection, the error is a *RejectedError. options may be nil. With QPOptions.Type UD, Dial
// asks which queue pair receives datagrams there (ListenDatagrams) and makes no connection: see Conn.Peer.
func (c *Client) Dial(ctx context.Context, address string, options *ConnOptions) (*Conn, error) {
	to, err := c.lookUp(ctx, address)
	if err != nil {
		return nil, err
	}
	id, err := c.createID(ctx, options.kind(RC), 0)
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, id, to, options)
	if err != nil {
		session.Undo(ctx, id.Destroy)
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}
	return conn, nil
}

func (c *Client) dial(ctx context.Context, id *cmid.ID, to netip.AddrPort, options *ConnOptions) (*Conn, error) {
	var from netip.AddrPort
	if options != nil {
		from = options.Source
	}
	device, err := id.Resolve(ctx, from, to)
	if err != nil {
		return nil, err
	}
	conn, err := c.prepare(ctx, id, device, options, options.purpose())
	if err != nil {
		return nil, err
	}
	ev, err := conn.handshake(ctx, abi.CMConnect, offered{255, 255})
	if err != nil {
		session.Undo(ctx, conn.release)
		return nil, err
	}
	conn.private = append([]byte(nil), ev.Param.Private()...)
	conn.local, conn.remote = ev.Local.AddrPort(), ev.Peer.AddrPort()
	if conn.kind == UD {
		conn.setPeer(ev.Peer, ev.Param.QPNum, ev.Param.QKey)
	}
	return conn, nil
}

// lookUp reads an address; for a name it returns an address whose family one of our ports has.
func (c *Client) lookUp(ctx context.Context, address string) (netip.AddrPort, error) {
	var ours []netip.Addr
	for _, d := range c.devices {
		ours = append(ours, d.Prefix.Addr())
	}
	return cmid.LookUp(ctx, address, ours)
}

// createID makes an id for queue pairs of a type on the event channel, which is made at first use.
func (c *Client) createID(ctx context.Context, kind QPType, queue int) (*cmid.ID, error) {
	ch, err := c.eventChannel(ctx)
	if err != nil {
		return nil, err
	}
	return ch.Create(ctx, kind.space(), queue)
}

func (c *Client) eventChannel(ctx context.Context) (*cmid.Channel, error) {
	if err := c.sharing.Lock(ctx); err != nil {
		return nil, err
	}
	defer c.sharing.Unlock()
	if cm := c.cm.Load(); cm != nil {
		return cm, nil
	}
	c.making.RLock()
	defer c.making.RUnlock()
	ch, err := cmid.NewChannel(ctx, c.session)
	if err != nil {
		return nil, err
	}
	c.cm.Store(ch)
	if c.dead() {
		ch.End() // the client may have been lost before the channel was set
	}
	c.readers.Go(ch.Read)
	return ch, nil
}
