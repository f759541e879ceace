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

// MaxPrivateData is how many bytes of private data every peer can read
// (struct rdma_conn_param counts them in 8 bits).
const MaxPrivateData = cmid.MaxPrivateData

// ConnOptions says what a connection is made of. Whatever is left out the
// connection makes, and takes with it when it is closed.
type ConnOptions struct {
	PD             *PD // of the device that reaches the peer
	SendCQ, RecvCQ *CQ
	// QP is of type RC unless it says otherwise. XRCSend and XRCRecv are connected as RC
	// is; one of type UD is told another to send to (Conn.Peer). UC is not for rdma_cm.
	QP QPOptions

	// Source is the address of ours that Dial connects from, and its port number, 0 for a
	// free one (src_addr of rdma_resolve_addr(3)). The zero value leaves both to urdmad.
	Source netip.AddrPort

	PrivateData []byte // for the peer, at most MaxPrivateData bytes
	// Serve is how many RDMA Reads of the peer may be open at a time
	// (responder_resources), Reads how many of ours (initiator_depth). 0 takes
	// what the device, and accepting what the peer, can do; negative is none.
	Serve, Reads int
	// RNRTries is how often a message to a peer that posted no receive is tried
	// (rnr_retry_count): 0 or 7 and above for ever, negative not again.
	RNRTries int
	// AckTimeout, up to 31, ends the wait for a silent peer after 32 times 4.096 µs <<
	// AckTimeout, half a second at least (RDMA_OPTION_ID_ACK_TIMEOUT); 0: as configured.
	AckTimeout int
	// Spin makes Wait and the connection's own operations poll for this long
	// before they sleep; see CQ.SetSpin. Of queues that it makes itself.
	Spin time.Duration
	// Prepare runs before the handshake: the place to register memory and to
	// post receives, so that the peer's first message finds one.
	Prepare func(*Conn) error
}

// Conn is a connection with its queue pair. Work is posted to QP and polled
// from its queues; where the connection made the queues itself, Send, Write,
// Read and Recv do both. A Conn made with the caller's queues leaves polling to
// the caller. A queue pair of type XRCSend has nothing to Recv, and its messages are
// posted (SendWR.SRQN); one of type XRCRecv does none of these.
type Conn struct {
	*QP
	id      *cmid.ID
	private []byte
	local   netip.AddrPort
	remote  netip.AddrPort
	param   abi.CMParam
	peer    Destination // of datagrams
	group   netip.Addr  // that the queue pair is attached to; or none
	own     struct {
		pd             bool
		sendCQ, recvCQ bool
	}
	turn   chan struct{} // holds the token of Send, Write and Read
	serial uint64
	closed sync.Once
	result error
}

// offered is what the peer of a request can do.
type offered struct{ serve, reads int }

// kind is the type of the queue pair that options ask for; otherwise, if they don't say.
func (o *ConnOptions) kind(otherwise QPType) QPType {
	if o == nil || o.QP.Type == 0 {
		return otherwise
	}
	return o.QP.Type
}

// purpose is what Dial is for: UD or RC.
func (o *ConnOptions) purpose() QPType {
	if o.kind(RC) == UD {
		return UD
	}
	return RC
}

// prepare makes what the options leave out, and the queue pair: for datagrams, or for
// a connection, as what they are for has it.
func (c *Client) prepare(ctx context.Context, id *cmid.ID, device uint32, options *ConnOptions, purpose QPType) (*Conn, error) {
	o := ConnOptions{}
	if options != nil {
		o = *options
	}
	o.QP.Type = options.kind(purpose)
	if o.QP.fill(); !o.QP.Type.serves(purpose == UD) {
		return nil, fmt.Errorf("verbs: a queue pair of type %v where one like %v is expected: %w", o.QP.Type, purpose, syscall.EINVAL)
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
					_ = m.Close() // the error that counts is the first
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
		return fmt.Errorf("verbs: the peer is reached by %s, the domain belongs to %s: %w", c.devices[device].Name, pd.ctx.device.Name, syscall.EINVAL)
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

// ownDomain makes a domain for one connection.
func (c *Client) ownDomain(ctx context.Context, device int) (*PD, error) {
	x, err := c.sharedContext(ctx, device)
	if err != nil {
		return nil, err
	}
	return x.allocPD(ctx)
}

// sharedContext is the device opened once for all connections that bring no
// protection domain.
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

// handshake sends CM_CONNECT or CM_ACCEPT and waits until it is answered, which
// accepted datagrams are not: there is no event then.
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

// SetPrivateData replaces ConnOptions.PrivateData. It is for Prepare, which may
// have made what the peer is to be told; later it has no effect.
func (conn *Conn) SetPrivateData(b []byte) error { return cmid.SetPrivate(&conn.param, b) }

// PrivateData is what the peer gave to Accept, or to Dial.
func (conn *Conn) PrivateData() []byte { return conn.private }

// LocalAddr is our end's address.
func (conn *Conn) LocalAddr() netip.AddrPort { return conn.local }

// RemoteAddr is the peer's address.
func (conn *Conn) RemoteAddr() netip.AddrPort { return conn.remote }

// Done is closed when the connection has ended: by either side, by the peer's
// death, or with urdmad (RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL).
// With datagrams, Close or urdmad's end close it.
func (conn *Conn) Done() <-chan struct{} { return conn.id.Done() }

// Err tells why the connection ended, nil before Done is closed: ErrDisconnected,
// with ETIMEDOUT where the peer fell silent, or ErrGone.
func (conn *Conn) Err() error {
	select {
	case <-conn.id.Done():
		return conn.id.Why()
	default:
		return nil
	}
}

// Disconnect ends the connection in good order (rdma_disconnect(3)): what was
// posted still goes out, for a second at most. It does not wait; Done tells.
func (conn *Conn) Disconnect() error { return conn.id.Request(abi.CMDisconnect) }

// closeLimit bounds Close where the peer takes nothing more.
const closeLimit = 2 * time.Second

// Close disconnects, waits until what was posted is out, two seconds at most,
// and destroys the queue pair and whatever the connection made for itself;
// memory that was registered in its own protection domain is deregistered.
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

// release is releaseObjects where another error counts.
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

// regions are the memory regions of a domain.
func (p *PD) regions() (all []*MR) {
	for _, m := range p.ctx.client.regions.All() {
		if m.pd == p {
			all = append(all, m)
		}
	}
	return all
}
