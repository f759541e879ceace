package verbs

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"syscall"

	"urdma/verbs/abi"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
)

// DefaultBacklog is the number of connection requests that a listener queues by default.
const DefaultBacklog = 128

// Listener accepts connection requests (rdma_listen(3)).
type Listener struct {
	client *Client
	id     *cmid.ID
	kind   QPType // RC for connections, UD for datagrams
	local  netip.AddrPort
}

// Listen accepts connection requests at "host:port" (rdma_bind_addr(3), rdma_listen(3)). An empty host means
// every port of urdmad, 127.0.0.1 included; port number 0 chooses a free one.
func (c *Client) Listen(address string) (*Listener, error) {
	return c.listen(address, RC, DefaultBacklog)
}

// ListenBacklog is like Listen, with the number of requests to queue, 1 to 65535. While the queue is full,
// other peers retry for some seconds.
func (c *Client) ListenBacklog(address string, backlog int) (*Listener, error) {
	if backlog < 1 || backlog > math.MaxUint16 {
		return nil, fmt.Errorf("verbs: backlog of %d requests, expected 1 to %d: %w", backlog, math.MaxUint16, syscall.EINVAL)
	}
	return c.listen(address, RC, backlog)
}

func (c *Client) listen(address string, kind QPType, backlog int) (*Listener, error) {
	at, err := c.lookUp(context.Background(), address)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address, ":") {
		at = netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()) // both families
	}
	id, err := c.createID(context.Background(), kind, backlog)
	if err != nil {
		return nil, err
	}
	local, err := id.Listen(at, uint32(backlog))
	if err != nil {
		id.Destroy()
		return nil, err
	}
	return &Listener{client: c, id: id, kind: kind, local: local}, nil
}

// Addr returns the listener's address with the port number chosen.
func (l *Listener) Addr() netip.AddrPort { return l.local }

// Next waits for a connection request. The caller must call Accept or Reject.
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	r, err := l.id.Next(ctx)
	if err != nil {
		return nil, err
	}
	return l.newRequest(r), nil
}

// Accept waits for a connection request and accepts it.
func (l *Listener) Accept(ctx context.Context, options *ConnOptions) (*Conn, error) {
	r, err := l.Next(ctx)
	if err != nil {
		return nil, err
	}
	return r.Accept(ctx, options)
}

// Close stops listening and rejects the queued requests. Connections are kept.
func (l *Listener) Close() error {
	l.id.CloseListener()
	return nil
}

// Request is a connection request that waits for Accept or Reject (RDMA_CM_EVENT_CONNECT_REQUEST of
// rdma_get_cm_event(3)).
type Request struct {
	client *Client
	id     *cmid.ID
	kind   QPType // the listener's
	event  abi.CMEvent

	PrivateData []byte // private data that the peer passed to Dial
	Local       netip.AddrPort
	Remote      netip.AddrPort
}

func (l *Listener) newRequest(r *cmid.Request) *Request {
	ev := &r.Event
	return &Request{client: l.client, id: r.ID, kind: l.kind, event: *ev, Local: ev.Local.AddrPort(),
		Remote:      ev.Peer.AddrPort(),
		PrivateData: append([]byte(nil), ev.Param.Private()...)}
}

// Accept accepts the request and returns when the peer has acknowledged it (rdma_accept(3)); a request for
// datagrams has no acknowledgement. options may be nil. A request can be answered once.
func (r *Request) Accept(ctx context.Context, options *ConnOptions) (*Conn, error) {
	peer := &r.event.Param
	conn, err := r.client.prepare(ctx, r.id, r.event.Device, options, r.kind)
	if err == nil {
		if _, err = conn.handshake(ctx, abi.CMAccept,
			offered{int(peer.ResponderResources), int(peer.InitiatorDepth)}); err != nil {
			session.Undo(ctx, conn.release)
		}
	}
	if err != nil {
		session.Undo(ctx, r.id.Destroy)
		return nil, err
	}
	conn.private, conn.local, conn.remote = r.PrivateData, r.Local, r.Remote
	if r.kind == UD {
		conn.setPeer(r.event.Peer, peer.QPNum, UDPQKey)
	}
	return conn, nil
}

// Reject rejects the request, with at most MaxPrivateData bytes of private data for the peer
// (rdma_reject(3)).
func (r *Request) Reject(private []byte) error {
	var param abi.CMParam
	if err := cmid.SetPrivate(&param, private); err != nil {
		return err
	}
	err := r.id.Connect(context.Background(), abi.CMReject, &param)
	r.id.Destroy()
	return err
}
