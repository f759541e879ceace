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
	// Socket is our socket, which that host uses as its peer's address.
	Socket netip.AddrPort
	// Host is the address of the host's own socket.
	Host netip.AddrPort
}

// Counts are counts of both directions.
type Counts struct {
	Received   uint64 `json:"received"`
	Forwarded  uint64 `json:"forwarded"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Late       uint64 `json:"late"`
	// Joined is the number of received datagrams that the kernel had joined with others.
	Joined uint64 `json:"joined"`
	// Spoiled is the number of datagrams that FirstOnly dropped.
	Spoiled uint64 `json:"spoiled"`
	// Strangers is the number of datagrams from neither host.
	Strangers uint64 `json:"strangers"`
}

// counters are the Counts while the relay runs.
type counters struct{ received, forwarded, lost, duplicated, late, joined, spoiled, strangers atomic.Uint64 }

// Relay is a running relay.
type Relay struct {
	sockets [2]*net.UDPConn
	counts  counters
	done    sync.WaitGroup
}

// Start starts forwarding between a and b.
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

// socketBuffer is the size of the sockets' buffers, so that a relay that is not scheduled for a moment loses nothing.
const socketBuffer = 8 << 20

// open makes a socket. If the kernel lacks UDP_GRO, datagrams arrive one by one.
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

// Counts returns the counts so far.
func (r *Relay) Counts() Counts {
	c := &r.counts
	return Counts{Received: c.received.Load(), Forwarded: c.forwarded.Load(), Lost: c.lost.Load(),
		Duplicated: c.duplicated.Load(),
		Late:       c.late.Load(), Joined: c.joined.Load(), Spoiled: c.spoiled.Load(), Strangers: c.strangers.Load()}
}

// Close ends the relay. Delayed datagrams are lost.
func (r *Relay) Close() (err error) {
	for _, s := range r.sockets {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	r.done.Wait()
	return err
}

// passes reports whether an error of a send concerns only one datagram, or the host that receives it, but not the
// socket.
func passes(err error) bool {
	for _, e := range []syscall.Errno{unix.ECONNREFUSED, unix.EMSGSIZE, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOBUFS,
		unix.EPERM, unix.EINVAL, unix.EIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Ready is the program's line when both sockets exist.
const Ready = "udprelay is ready"
