package verbs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"urdma/verbs/abi"
)

// MaxPrivateData is the most private data a connection request, accept or reject
// carries, in bytes.
const MaxPrivateData = abi.MaxPrivate

// ConnConfig says what a connection is made with.
type ConnConfig struct {
	PD             *PD
	SendCQ, RecvCQ *CQ // may be one
	QP             QPConfig
	PrivateData    []byte // for the peer, at most MaxPrivateData bytes
	// Reads is how many RDMA Reads may be open at once, each way; the peer's
	// number counts too. 0 is 16, negative none.
	Reads int
	// NoReceiveFails has a message fail the connection if the receiver has not
	// posted a receive for it after a tenth of a second. Without it the message
	// waits.
	NoReceiveFails bool
	// Prepare, if set, is called with the new queue pair before the connection
	// is made: the place to post receives for what the peer sends first.
	Prepare func(*QP) error
}

const (
	defaultReads = 16
	retryForever = 7 // rnr_retry_count of rdma_connect(3)
	retrySome    = 6
)

func (cfg *ConnConfig) check() error {
	switch {
	case cfg.PD == nil:
		return fmt.Errorf("%w: a connection needs a protection domain", ErrRequest)
	case len(cfg.PrivateData) > MaxPrivateData:
		return fmt.Errorf("%w: %d bytes of private data, at most %d", ErrRequest, len(cfg.PrivateData), MaxPrivateData)
	}
	return nil
}

func (cfg *ConnConfig) param(q *QP) abi.CMParam {
	reads := cfg.Reads
	if reads == 0 {
		reads = defaultReads
	}
	reads = min(max(reads, 0), 255)
	p := abi.CMParam{QP: q.handle, QPNum: q.Num, ResponderResources: uint8(reads), InitiatorDepth: uint8(reads),
		RetryCount: 7, RNRRetryCount: retryForever}
	if cfg.NoReceiveFails {
		p.RNRRetryCount = retrySome
	}
	p.SetPrivate(cfg.PrivateData)
	return p
}

// Conn is a connection and its queue pair.
type Conn struct {
	*QP
	// PrivateData is what the peer sent with its request or accept.
	PrivateData []byte
	Local, Peer netip.AddrPort

	id    *id
	close sync.Once
	err   error
}

// Done is closed when the connection has ended, by either side or by the death
// of the peer. Work requests complete with Flushed, or with what ended it.
func (c *Conn) Done() <-chan struct{} { return c.id.over }

// Disconnect ends the connection in good order: what was posted goes out first,
// for a second at most. Done tells when it has ended.
func (c *Conn) Disconnect() error {
	if err := release(c.id.c, abi.CMDisconnect, c.id.handle); err != nil {
		return fmt.Errorf("verbs: disconnect: %w", err)
	}
	return nil
}

// closeWait is how long Close waits for an orderly end.
const closeWait = 2 * time.Second

// Close disconnects, waits for the end, and destroys the queue pair.
func (c *Conn) Close() error {
	c.close.Do(func() {
		if c.Disconnect() == nil {
			select {
			case <-c.id.over:
			case <-time.After(closeWait):
			}
		}
		c.id.destroy()
		c.err = c.QP.Close()
	})
	return c.err
}

// makeQP makes and prepares the queue pair of a connection.
func (cfg *ConnConfig) makeQP() (*QP, error) {
	q, err := cfg.PD.NewQP(cfg.SendCQ, cfg.RecvCQ, cfg.QP)
	if err != nil {
		return nil, err
	}
	if cfg.Prepare != nil {
		if err := cfg.Prepare(q); err != nil {
			_ = q.Close() // the error that matters is Prepare's
			return nil, err
		}
	}
	return q, nil
}

func addrPort(a abi.Addr) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(a.IPv4BE), a.Port())
}

// resolve makes an rdma_cm address of "host:port".
func resolve(ctx context.Context, address string) (abi.Addr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return abi.Addr{}, fmt.Errorf("verbs: address %q: %w", address, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return abi.Addr{}, fmt.Errorf("verbs: address %q: %w", address, err)
	}
	if host == "" {
		return abi.MakeAddr([4]byte{}, uint16(port)), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return abi.Addr{}, fmt.Errorf("verbs: address %q: %w", address, err)
	}
	return abi.MakeAddr(ips[0].Unmap().As4(), uint16(port)), nil
}
