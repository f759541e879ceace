package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"urdma/verbs/abi"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
)

// MaxPrivateData is the number of bytes of private data that every peer can read (its length has 8 bits in
// struct rdma_conn_param).
const MaxPrivateData = cmid.MaxPrivateData

// ConnOptions has the parts and parameters of a connection. The connection makes the parts that are left out,
// and destroys those when it is closed.
type ConnOptions struct {
	PD             *PD // on the device that reaches the peer
	SendCQ, RecvCQ *CQ
	// QP is of type RC unless it says otherwise. XRCSend and XRCRecv are connected as RC is; for type UD
	// rdma_cm returns the peer's queue pair (Conn.Peer). rdma_cm does not support UC.
	QP QPOptions

	// Source is our address and port number for Dial; port number 0 means a free one (src_addr of
	// rdma_resolve_addr(3)). The zero value leaves both to urdmad.
	Source netip.AddrPort

	PrivateData []byte // for the peer, at most MaxPrivateData bytes
	// Serve is the number of RDMA Reads that the peer may have outstanding (responder_resources), Reads the
	// number of ours (initiator_depth). 0 means the maximum of the device and, when accepting, of the peer; a
	// negative value means none.
	Serve, Reads int
	// RNRTries is the number of retries for a message to a peer that posted no receive (rnr_retry_count): 0
	// and values from 7 on mean for ever, a negative value none.
	RNRTries int
	// AckTimeout, up to 31, sets the time after which a silent peer counts as dead: 32 times 4.096 µs <<
	// AckTimeout, at least half a second (RDMA_OPTION_ID_ACK_TIMEOUT). 0: as configured.
	AckTimeout int
	// Spin makes Wait and the connection's own operations poll for this long before they sleep; see
	// CQ.SetSpin. It applies to queues that the connection makes itself.
	Spin time.Duration
	// Prepare runs before the handshake. It may register memory and post receives, so that the peer's first
	// message finds one.
	Prepare func(*Conn) error
}

// Conn is a connection with its queue pair. Work is posted to QP and polled from its queues; if the
// connection made the queues itself, Send, Write, Read and Recv do both. If the caller provided the queues,
// the caller polls. A queue pair of type XRCSend can't Recv, and its messages are posted (SendWR.SRQN); one
// of type XRCRecv supports none of these calls.
type Conn struct {
	*QP
	id      *cmid.ID
	private []byte
	local   netip.AddrPort
	remote  netip.AddrPort
	param   abi.CMParam
	peer    Destination // for datagrams
	group   netip.Addr  // the multicast group that was joined, or the zero Addr
	own     struct {
		pd             bool
		sendCQ, recvCQ bool
	}
	turn   chan struct{} // holds the token that Send, Write and Read take
	serial uint64
	closed sync.Once
	result error
}

// offered is the depths in the peer's connection request.
type offered struct{ serve, reads int }

// kind returns the type of queue pair that the options name, or otherwise if they name none.
func (o *ConnOptions) kind(otherwise QPType) QPType {
	if o == nil || o.QP.Type == 0 {
		return otherwise
	}
	return o.QP.Type
}

// purpose returns the type for which Dial connects: UD or RC.
func (o *ConnOptions) purpose() QPType {
	if o.kind(RC) == UD {
		return UD
	}
	return RC
}

// prepare makes the parts that the options leave out, and the queue pair, for datagrams or for a connection.
func (c *Client) prepare(ctx context.Context, id *cmid.ID, device uint32, options *ConnOptions,
	purpose QPType) (*Conn, error) {
	o := ConnOptions{}
	if options != nil {
		o = *options
	}
	o.QP.Type = options.kind(purpose)
	if o.QP.fill(); !o.QP.Type.serves(purpose == UD) {
		return nil, fmt.Errorf("verbs: a queue pair of type %v where one like %v is expected: %w", o.QP.Type, purpose,
			syscall.EINVAL)
	}
	conn := &Conn{id: id, turn: make(chan struct{}, 1)}
	if err := cmid.SetPrivate(&conn.param, o.PrivateData); err != nil {
		return nil, err
	}
	conn.param.ResponderResources, conn.param.InitiatorDepth = cmid.Depth(o.Serve), cmid.Depth(o.Reads)
	conn.param.RetryCount, conn.param.RNRRetryCount = 7, cmid.RNRTries(o.RNRTries)
	if err := id.SetAckTimeout(ctx, o.AckTimeout); err != nil {
		return nil, err
	}
	if err := conn.make(ctx, c, device, &o); err != nil {
		return nil, err
	}
	if o.QP.Type == UD {
		conn.param.QKey = UDPQKey
		if err := conn.startDatagrams(ctx, UDPQKey); err != nil {
			session.Undo(ctx, conn.release)
			return nil, err
		}
	}
	id.OnEnd(func() { conn.state.CompareAndSwap(abi.QPSRTS, abi.QPSErr) })
	if o.Prepare != nil {
		if err := o.Prepare(conn); err != nil {
			session.Undo(ctx, conn.release)
			return nil, err
		}
	}
	return conn, nil
}

func (conn *Conn) make(ctx context.Context, c *Client, device uint32, o *ConnOptions) (err error) {
	if int(device) >= len(c.devices) {
		return fmt.Errorf("verbs: no device %d: %w", device, syscall.ENODEV)
	}
	if o.QP.Type == XRCRecv {
		conn.QP, err = o.QP.target(ctx, c.devices[device])
		return err
	}
	var made []interface{ Close() error }
	defer func() {
		if err != nil {
			session.Undo(ctx, func() {
				for _, m := range slices.Backward(made) {
					_ = m.Close() // the first error is the one to return
				}
			})
		}
	}()
	pd := o.PD
	if pd == nil {
		if pd, err = c.ownDomain(ctx, int(device)); err != nil {
			return err
		}
		conn.own.pd, made = true, append(made, pd)
	} else if pd.ctx.device.number != int(device) {
		return fmt.Errorf("verbs: the peer is reached by %s, the domain belongs to %s: %w", c.devices[device].Name,
			pd.ctx.device.Name, syscall.EINVAL)
	}
	o.QP.fill()
	send, recv := o.SendCQ, o.RecvCQ
	if send == nil {
		if send, err = pd.ctx.waitableCQ(ctx, o.QP.SendWR, o.Spin); err != nil {
			return err
		}
		conn.own.sendCQ, made = true, append(made, send)
	}
	if recv == nil && o.QP.Type != XRCSend {
		if recv, err = pd.ctx.waitableCQ(ctx, o.QP.receives(), o.Spin); err != nil {
			return err
		}
		conn.own.recvCQ, made = true, append(made, recv)
	}
	conn.QP, err = pd.createQP(ctx, send, recv, o.QP)
	return err
}

// ownDomain makes a protection domain for one connection.
func (c *Client) ownDomain(ctx context.Context, device int) (*PD, error) {
	x, err := c.sharedContext(ctx, device)
	if err != nil {
		return nil, err
	}
	return x.allocPD(ctx)
}

// sharedContext returns the device's context that all connections without a protection domain of their own
// share; the first call opens it.
func (c *Client) sharedContext(ctx context.Context, device int) (*Context, error) {
	if err := c.sharing.Lock(ctx); err != nil {
		return nil, err
	}
	defer c.sharing.Unlock()
	if x := c.shared[device]; x != nil {
		return x, nil
	}
	x, err := c.devices[device].open(ctx)
	if err == nil {
		c.shared[device] = x
	}
	return x, err
}

// waitableCQ makes a queue on the context's own channel.
func (x *Context) waitableCQ(ctx context.Context, entries int, spin time.Duration) (*CQ, error) {
	if err := x.own.Lock(ctx); err != nil {
		return nil, err
	}
	defer x.own.Unlock()
	if x.channel == nil {
		ch, err := x.createCompChannel(ctx)
		if err != nil {
			return nil, err
		}
		x.channel = ch
	}
	q, err := x.createCQ(ctx, min(entries, x.device.MaxCQE), x.channel)
	if err == nil {
		q.SetSpin(spin)
	}
	return q, err
}

// handshake sends CM_CONNECT or CM_ACCEPT and waits for the event that completes it. Accepting a request for
// datagrams has no such event.
func (conn *Conn) handshake(ctx context.Context, t abi.Type, peer offered) (*abi.CMEvent, error) {
	cmid.Limit(&conn.param, peer.serve, peer.reads, conn.ctx.device.MaxReads)
	conn.param.QP, conn.param.QPNum = conn.handle, conn.pair.QPN
	if err := conn.id.Connect(ctx, t, &conn.param); err != nil {
		return nil, err
	}
	if conn.kind == UD && t == abi.CMAccept {
		return nil, nil
	}
	ev, err := conn.id.Await(ctx, abi.CMEstablished)
	if err == nil {
		conn.state.CompareAndSwap(abi.QPSInit, abi.QPSRTS)
	}
	return ev, err
}

// SetPrivateData replaces ConnOptions.PrivateData. Prepare calls it if it makes the data for the peer; later
// calls have no effect.
func (conn *Conn) SetPrivateData(b []byte) error { return cmid.SetPrivate(&conn.param, b) }

// PrivateData returns the private data that the peer passed to Accept or Dial.
func (conn *Conn) PrivateData() []byte { return conn.private }

// LocalAddr returns the address of our end.
func (conn *Conn) LocalAddr() netip.AddrPort { return conn.local }

// RemoteAddr returns the peer's address.
func (conn *Conn) RemoteAddr() netip.AddrPort { return conn.remote }

// Done is closed when the connection has ended: by either side, by the peer's death, or with urdmad
// (RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL). For datagrams it is closed by Close or urdmad's
// end.
func (conn *Conn) Done() <-chan struct{} { return conn.id.Done() }

// Err returns why the connection ended, nil before Done is closed: ErrDisconnected, which wraps ETIMEDOUT if
// the peer was silent, or ErrGone.
func (conn *Conn) Err() error {
	select {
	case <-conn.id.Done():
		return conn.id.Why()
	default:
		return nil
	}
}

// Disconnect ends the connection in good order (rdma_disconnect(3)): posted work is still sent, for at most a
// second. It does not wait; Done is closed at the end.
func (conn *Conn) Disconnect() error { return conn.id.Request(abi.CMDisconnect) }

// closeLimit bounds Close if the peer accepts no more data.
const closeLimit = 2 * time.Second

// Close disconnects, waits at most two seconds until posted work is sent, and destroys the queue pair and
// everything that the connection made for itself. Memory registered in its own protection domain is
// deregistered.
func (conn *Conn) Close() error {
	conn.closed.Do(func() {
		if conn.kind != UD && conn.Err() == nil && conn.Disconnect() == nil {
			t := time.NewTimer(closeLimit)
			defer t.Stop()
			select {
			case <-conn.id.Done():
			case <-t.C:
			}
		}
		conn.result = conn.releaseObjects()
		conn.id.Destroy()
	})
	return conn.result
}

// release is releaseObjects when another error is returned.
func (conn *Conn) release() { _ = conn.releaseObjects() }

func (conn *Conn) releaseObjects() error {
	var all []error
	if conn.group.IsValid() {
		all = append(all, conn.DetachMcast(conn.group))
	}
	all = append(all, conn.QP.Close())
	if conn.own.sendCQ {
		all = append(all, conn.sendCQ.Close())
	}
	if conn.own.recvCQ {
		all = append(all, conn.recvCQ.Close())
	}
	if conn.own.pd {
		for _, m := range conn.pd.regions() {
			all = append(all, m.Close())
		}
		all = append(all, conn.pd.Close())
	}
	if conn.ctx.client.dead() {
		return nil // urdmad's end has released everything
	}
	return errors.Join(all...)
}

// regions returns the memory regions of a domain.
func (p *PD) regions() (all []*MR) {
	for _, m := range p.ctx.client.regions.All() {
		if m.pd == p {
			all = append(all, m)
		}
	}
	return all
}
