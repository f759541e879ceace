package main

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"time"

	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/umad"
)

// wires is how management datagrams (MADs) come from other hosts' urdmads and go there. It is
// umad.Wires.
type wires struct {
	d        *daemon
	named    []netip.Addr // hosts, by the configuration
	arrivals chan arrivedMAD
}

type arrivedMAD struct {
	from umad.Host
	mad  fabric.MAD
}

const (
	// maxArrivals bounds the MADs that wait to be looked at; others are lost.
	maxArrivals = 256
	// mostHosts bounds the hosts of a port that are asked because they have answered something.
	mostHosts = 64
)

// reachWires has the subnet include other urdmads' ports.
func (d *daemon) reachWires() {
	w := &wires{d, d.Config.FabricHosts, make(chan arrivedMAD, maxArrivals)}
	d.subnet.Reach(w)
	first := d.Pollers[0] // to which queue pair 1 belongs
	first.Engine.Do(func() { first.Engine.Datagrams.Management = w.arrived })
	d.wires = w
}

// arrived is datagram.Stack's, on the worker's thread.
func (w *wires) arrived(dev int, from netip.Addr, mad []byte) {
	if len(w.arrivals) < cap(w.arrivals) { // there is no other sender
		w.arrivals <- arrivedMAD{umad.Host{Device: dev, Addr: from}, bytes.Clone(mad)}
	}
}

func (d *daemon) runWires(ctx context.Context) {
	d.Background.Go(func() { d.wires.run(ctx) })
}

// run looks at what arrives until ctx ends.
func (w *wires) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-w.arrivals:
			if p := w.d.responder.Policy(); p.Serve && (len(p.Allow) == 0 || p.Names(a.from.Addr)) {
				w.d.subnet.Arrived(a.from, a.mad, p.Names(a.from.Addr))
			}
		}
	}
}

// Send is umad.Wires'.
func (w *wires) Send(to umad.Host, m fabric.MAD) {
	first := w.d.Pollers[0]
	first.Do(func() { first.Engine.Datagrams.SendManagement(to.Device, to.Addr, m) })
}

// Hosts is umad.Wires'.
func (w *wires) Hosts() []umad.Host {
	found := make(chan []umad.Host, 1)
	w.d.Pollers[0].Do(func() { found <- w.hosts() })
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	select {
	case list := <-found:
		return list
	case <-limit.C:
		return nil
	}
}

// hosts is Hosts on the worker's thread.
func (w *wires) hosts() (list []umad.Host) {
	for dev := range w.d.Config.Ports {
		n := w.d.Pollers[0].Engine.Interface(dev)
		to := n.Hosts(mostHosts)
		if all, ok := n.AllHosts(); ok {
			to = append(to, all)
		}
		for _, a := range w.named {
			if _, ok := n.NextHop(a); ok && !slices.Contains(to, a) {
				to = append(to, a)
			}
		}
		for _, a := range to {
			list = append(list, umad.Host{Device: dev, Addr: a})
		}
	}
	return list
}
