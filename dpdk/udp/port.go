package udp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urdma/dpdk/netdev"
	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

// Port is a port implemented as a UDP socket. See package port for the rules of its methods.
type Port struct {
	info    port.Info
	queues  []*queue
	link    port.LinkState
	iface   *netdev.Interface // nil: its state is not followed
	stop    func()
	closing sync.Once
	err     error
}

// queue is one of the port's sockets.
type queue struct {
	own            source
	groups         groups
	v4             bool
	scope          uint32 // for link-local addresses the interface's index; else 0
	class          uint8  // traffic class of sent packets
	room           int    // bytes of the largest packet
	txRoom         int    // bytes of the largest packet that is sent
	rx             receiver
	tx             transmitter
	counters       port.Counters
	allow          []netip.Prefix
	outsiderLogged time.Time                            // when a sender outside allow was last logged
	gso, gro       atomic.Bool                          // supported by the kernel; gso may be turned off later
	renumber       func(payload []byte, was, is uint16) // nil: packets do not cover the identification
	log            func(message string, args ...any)
}

// Open makes a port.
func Open(o Options) (port.Port, error) {
	iface, err := o.fill()
	if err != nil {
		return nil, err
	}
	scope := uint32(0)
	if a := o.Address.Addr(); a.Is6() && a.IsLinkLocalUnicast() {
		scope = uint32(iface.Index)
	}
	fds, err := openAll(&o, scope)
	if err != nil {
		return nil, fmt.Errorf("udp: port %q: %w", o.Name, err)
	}
	able := probe(o.Address.Addr().Is4())
	longest := fragmentFrom(o.Address.Addr(), iface.MTU)
	window := receiveWindow(fds[0], o.MTU)
	p := &Port{info: port.Info{Name: o.Name, Driver: o.Driver, Interface: netdev.Name(uint32(iface.Index)), MAC: o.MAC,
		MTU:           o.MTU,
		TxUDPChecksum: true, Datagrams: true, Batches: able.cut, Wire: true, FragmentFrom: longest, ReceiveWindow: window}}
	for _, fd := range fds {
		q := &queue{own: source{fd: fd}, allow: o.Allow, v4: o.Address.Addr().Is4(), scope: scope,
			room: o.MTU - ipHeader(o.Address.Addr()) - udpHeader}
		q.txRoom = max(q.room, longest)
		q.start(&o, uint32(iface.Index), able)
		p.queues = append(p.queues, q)
	}
	p.follow(uint32(iface.Index), o.Log)
	return p, nil
}

// start initialises a queue whose socket is open; index is the network interface's.
func (q *queue) start(o *Options, index uint32, able ability) {
	if able.join {
		able.join = unix.SetsockoptInt(q.own.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	}
	q.log = func(message string, args ...any) { o.Log.Warn(message, append([]any{"port", o.Name}, args...)...) }
	// Splitting sends without joining receives costs a receiver more than it saves the sender, but the
	// receiver is another machine: each side decides for itself.
	q.gso.Store(able.cut)
	q.gro.Store(able.join)
	if o.ECN {
		markCongestion(q.own.fd, q.v4)
		q.class = capable
	}
	if q.v4 {
		q.renumber = o.Renumber
	}
	q.groups.init(o.Address, index, o.ECN, q.own.fd)
	q.rx.init(q)
	q.tx.init(q)
}

// follow keeps the link the same as the interface's. If the kernel does not report it (a sandbox without
// netlink), the link is up.
func (p *Port) follow(index uint32, log *slog.Logger) {
	iface, err := netdev.ByIndex(index)
	if err == nil {
		p.iface = iface
		first := make(chan struct{})
		var once sync.Once
		p.stop, err = iface.Watch(func(s netdev.State) {
			p.link.Set(s.Up)
			once.Do(func() { close(first) })
		})
		if err == nil {
			select {
			case <-first:
			case <-time.After(5 * time.Second):
			}
			return
		}
	}
	log.Info("the network interface's link is not followed", "port", p.info.Name, "error", err)
	p.link.Set(true)
}

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *Port) Queues() int { return len(p.queues) }

// Queue implements port.Port.
func (p *Port) Queue(i int) port.Queue { return p.queues[i] }

// Link implements port.Port: it is the link of the interface that had the port's address when the port was
// opened.
func (p *Port) Link() bool { return p.link.Up() }

// Watch implements port.Port.
func (p *Port) Watch(f func(up bool)) { p.link.Watch(f) }

// Stats implements port.Port.
func (p *Port) Stats() port.Stats {
	s := p.link.Stats()
	for _, q := range p.queues {
		s = s.Add(q.counters.Snapshot())
	}
	return s
}

// Offloads implements port.Offloader.
func (p *Port) Offloads() string {
	q := p.queues[0]
	return fmt.Sprintf("sends %s, receives %s, receive buffer for %d packets", upTo(q.gso.Load(), "segments"),
		upTo(q.gro.Load(), "joined datagrams"),
		p.info.ReceiveWindow)
}

func upTo(offload bool, what string) string {
	if !offload {
		return "one datagram at a time"
	}
	return fmt.Sprintf("up to %d %s at a time", maxSegments, what)
}

// Close implements port.Port.
func (p *Port) Close() error {
	p.closing.Do(func() {
		p.link.Close()
		if p.stop != nil {
			p.stop()
		}
		if p.iface != nil {
			p.err = p.iface.Close()
		}
		for _, q := range p.queues {
			p.err = errors.Join(p.err, unix.Close(q.own.fd))
			q.groups.close()
		}
	})
	return p.err
}
