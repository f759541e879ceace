package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// End is one of the two hosts.
type End struct {
	// Socket is ours which that host sees in the other one's place.
	Socket netip.AddrPort
	// Host is where its own socket is.
	Host netip.AddrPort
}

// Counts are of both directions.
type Counts struct {
	Received   uint64 `json:"received"`
	Forwarded  uint64 `json:"forwarded"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Late       uint64 `json:"late"`
	// Joined is how many of those received came joined with others.
	Joined uint64 `json:"joined"`
	// Spoiled is what FirstOnly took.
	Spoiled uint64 `json:"spoiled"`
	// Strangers are datagrams from neither host.
	Strangers uint64 `json:"strangers"`
}

// counters are Counts under way.
type counters struct{ received, forwarded, lost, duplicated, late, joined, spoiled, strangers atomic.Uint64 }

// Relay is a running relay.
type Relay struct {
	sockets [2]*net.UDPConn
	counts  counters
	done    sync.WaitGroup
}

// Start begins to forward between a and b.
func Start(a, b End, f Fate) (*Relay, error) {
	r := &Relay{}
	ends := [2]End{a, b}
	for i, e := range ends {
		s, err := open(e.Socket)
		if err != nil {
			_ = r.Close()
			return nil, fmt.Errorf("relay: %w", err)
		}
		r.sockets[i] = s
	}
	for i := range ends {
		w := &way{from: r.sockets[i], to: r.sockets[1-i], host: ends[i].Host, target: ends[1-i].Host,
			draws: f.draws(uint64(i)), counts: &r.counts}
		r.done.Go(w.forward)
	}
	return r, nil
}

// socketBuffer is asked for as the sockets' buffers; a relay that is not scheduled
// for a moment should lose nothing by itself.
const socketBuffer = 8 << 20

// open makes a socket. UDP_GRO may be missing: then datagrams come one by one.
func open(a netip.AddrPort) (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(a))
	if err != nil {
		return nil, err
	}
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) })
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Counts is what has happened so far.
func (r *Relay) Counts() Counts {
	c := &r.counts
	return Counts{Received: c.received.Load(), Forwarded: c.forwarded.Load(), Lost: c.lost.Load(),
		Duplicated: c.duplicated.Load(),
		Late:       c.late.Load(), Joined: c.joined.Load(), Spoiled: c.spoiled.Load(), Strangers: c.strangers.Load()}
}

// Close ends the relay. What was to come late is lost.
func (r *Relay) Close() (err error) {
	for _, s := range r.sockets {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	r.done.Wait()
	return err
}

// passes reports errors of a send that say something about one datagram, or the
// host behind it, and nothing about the socket.
func passes(err error) bool {
	for _, e := range []syscall.Errno{unix.ECONNREFUSED, unix.EMSGSIZE, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOBUFS,
		unix.EPERM, unix.EINVAL, unix.EIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Ready is the line by which the program says that both sockets are there.
const Ready = "udprelay is ready"
