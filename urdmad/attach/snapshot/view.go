package snapshot

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"

	"urdma/counters"
	"urdma/dpdk/port"
	"urdma/inspect"
	"urdma/reason/words"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/control/process"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/mpa"
	"urdma/urdmad/core/neighbour"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/roce"
	"urdma/urdmad/core/trp"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
	"urdma/wire"
)

// This file copies objects into a snapshot. Everything except ports and sortSnapshot runs on the
// engine's thread.

// What the rooms count, and where a snapshot has it.
var (
	portCounts      = counters.NewCopy[port.Stats, inspect.Port]()
	engineCounts    = counters.NewCopy[engine.Counts, inspect.Totals]()
	handshakeCounts = counters.NewCopy[cm.Stats, inspect.Handshakes]()
	workCounts      = counters.NewCopy[qp.Counters, inspect.Work]()
	trafficCounts   = counters.NewCopy[trp.Traffic, inspect.Traffic]()
	streamCounts    = counters.NewCopy[mpa.Traffic, inspect.Traffic]()
)

// ports adds the ports.
func (g *Gathering) ports() {
	for i := range g.s.Devices {
		d := &g.s.Devices[i]
		at := d.At()
		p := inspect.Port{Name: d.Name, Device: d.Of, Number: d.Number, Address: at.Address.String(),
			MAC: net.HardwareAddr(d.MAC[:]).String(),
			MTU: at.MTU, Transport: d.Personality.Name, MaxQPs: d.MaxQP, Protocol: "trp"}
		if g.Worker.Engine.SpeaksRoCE(i) {
			p.Protocol = "rocev2"
		}
		shown := personality.Port{MAC: d.MAC, Addr: at.Address.Addr()}
		gids := d.Personality.GIDs(&shown)
		p.GID, p.LID = netip.AddrFrom16(gids[len(gids)-1].Value).String(), d.Personality.LID(&shown)
		if d.Link != nil {
			p.LinkUp = d.Link()
		}
		if g.t.Ports != nil {
			g.t.Ports[i].show(&p)
		}
		g.Snapshot.Ports = append(g.Snapshot.Ports, p)
	}
}

// show asks the driver, whose counters any goroutine may read.
func (d *Port) show(p *inspect.Port) {
	p.Driver, p.Interface, p.Vdev, p.Rate = d.Driver, d.Interface, d.Vdev, d.Rate
	if d.Offloads != nil {
		p.Offloads = d.Offloads()
	}
	t := d.Stats()
	portCounts.Into(p, &t)
}

// engine copies state that belongs to no client. Counters of removed objects are copied before
// the objects, so that work of an object removed in between is missing until the next snapshot,
// and nothing counts twice.
func (g *Gathering) engine() {
	if g.Snapshot.Restricted {
		return
	}
	e := g.Worker.Engine
	if g.t.Loop != nil {
		l := g.t.Loop(g.number)
		l.Core = e.Core()
		g.loop(l)
	}
	past := e.QPs.Past()
	if g.Snapshot.Totals == nil {
		g.Snapshot.Totals = &inspect.Totals{BadFrames: map[string]uint64{},
			Traffic: make([]inspect.Traffic, len(g.s.Devices))}
		g.Snapshot.Handshakes = new(inspect.Handshakes)
	}
	t := g.Snapshot.Totals
	gone := work(&past)
	t.QP.Add(&gone)
	t.TerminatesSent = inspect.AddTerminates(t.TerminatesSent, terminates(e.Streams.TerminatesSent))
	t.TerminatesGot = inspect.AddTerminates(t.TerminatesGot, terminates(e.Streams.TerminatesGot))
	counts := e.Counts()
	engineCounts.Into(t, &counts)
	for dev := range g.s.Devices {
		p := e.TRP.PastTraffic(dev)
		all, s := traffic(&p), e.MPA.PastTraffic(dev)
		streamCounts.Into(&all, &s)
		t.Traffic[dev].Add(&all)
		port := &g.Snapshot.Ports[dev]
		port.QPs = g.s.Devices[g.s.First(dev)].Pairs.Len()
		for why, n := range e.Interface(dev).Stats.Dropped {
			t.BadFrames[string(why)] += n
			if n > 0 {
				if port.Discarded == nil {
					port.Discarded = map[string]uint64{}
				}
				port.Discarded[string(why)] += n
			}
		}
	}
	handshakeCounts.Into(g.Snapshot.Handshakes, &g.Worker.CM.Stats)
}

func (g *Gathering) neighbour(dev int, e neighbour.Entry) {
	n := inspect.Neighbour{Port: g.s.Devices[dev].Name, Address: e.IP.String(), State: "INCOMPLETE"}
	switch {
	case e.Known && e.Asking:
		n.State = "PROBE"
	case e.Known:
		n.State = "REACHABLE"
	}
	if e.Known {
		n.MAC = e.MAC.String()
	}
	same := func(o inspect.Neighbour) bool { return o.Port == n.Port && o.Address == n.Address }
	if at := slices.IndexFunc(g.before.neighbours, same); at < 0 { // each worker resolves addresses separately
		g.Snapshot.Neighbours = append(g.Snapshot.Neighbours, n)
	} else if o := &g.before.neighbours[at]; o.MAC == "" {
		*o = n
	}
}

// loop adds the statistics of a worker's poll loop.
func (g *Gathering) loop(l inspect.Loop) {
	if len(g.s.Workers) == 1 {
		g.Snapshot.Loop = &l
		return
	}
	g.Snapshot.Workers = append(g.Snapshot.Workers, inspect.Worker{Number: len(g.Snapshot.Workers), Loop: l,
		Clients: len(g.Worker.Clients()), QPs: g.Worker.Engine.QPs.Len()})
	if g.Snapshot.Loop == nil {
		g.Snapshot.Loop = &inspect.Loop{Core: -1}
	}
	g.Snapshot.Loop.Add(&l)
}

func (g *Gathering) group(dev int, link *netif.Interface, i int) {
	address, times := link.TakenGroup(i)
	v := inspect.Group{Port: g.s.Devices[dev].Name, Address: address.String(), Joined: times}
	if l, ok := link.GroupLink(address); ok {
		v.MAC = l.MAC.String()
	}
	same := func(o inspect.Group) bool { return o.Port == v.Port && o.Address == v.Address }
	if at := slices.IndexFunc(g.before.groups, same); at >= 0 {
		g.before.groups[at].Joined += times
		return
	}
	g.Snapshot.Groups = append(g.Snapshot.Groups, v)
}

// limits adds a client's resources and limits, and those of its user once. A container may have
// clients with the same user ID; its processes do not see the user's totals.
func (g *Gathering) limits(x *control.Session) {
	o := &x.Owner
	add := func(of string, l inspect.Limit, list []account.Usage) {
		for _, u := range list {
			l.Of, l.Name, l.Used, l.Allowed = of, u.Name, u.Used, u.Allowed
			g.Snapshot.Limits = append(g.Snapshot.Limits, l)
		}
	}
	add(inspect.OfClient, inspect.Limit{Client: x.ID(), PID: o.PID, Command: o.Name, UID: o.UID}, x.Usage())
	ofUser := func(l inspect.Limit) bool { return l.Of == inspect.OfUser && l.UID == o.UID }
	if (g.Viewer.Admin || g.Viewer.Realm == process.OurRealm) && !slices.ContainsFunc(g.Snapshot.Limits, ofUser) {
		add(inspect.OfUser, inspect.Limit{UID: o.UID}, x.UserUsage())
	}
	ofAll := func(l inspect.Limit) bool { return l.Of == inspect.OfAll }
	if !g.Snapshot.Restricted && !slices.ContainsFunc(g.Snapshot.Limits, ofAll) {
		add(inspect.OfAll, inspect.Limit{UID: -1}, g.s.Usage())
	}
}

// terminates lists every known Terminate code, also those with count 0, so that a monitor sees
// each count from the beginning, and unknown codes that peers have sent.
func terminates(m map[wire.TermCode]uint64) []inspect.Terminate {
	out := []inspect.Terminate{}
	codes := slices.AppendSeq(slices.Clone(wire.TermCodes), maps.Keys(m))
	slices.Sort(codes)
	for _, c := range slices.Compact(codes) {
		out = append(out, inspect.Terminate{Layer: int(c.Layer()), Type: int(c.Type()), Code: int(c.Code()),
			Text: c.String(), Count: m[c]})
	}
	return out
}

// of returns the facts common to all objects of a device or port.
func (g *Gathering) of(o control.Object, device string) inspect.Object {
	v := o.Info()
	who := &v.Session.Owner
	return inspect.Object{Client: v.Session.ID(), PID: who.PID, Command: who.Name, Handle: v.Handle, Device: device,
		Created: g.clock.time(v.Made)}
}

func (g *Gathering) object(c *inspect.Client, v control.Object) {
	switch o := v.(type) {
	case *objects.Context:
		c.Contexts++
		c.EventsWaiting += o.Async.Pending()
	case *objects.Channel:
		c.EventsWaiting += o.Socket.Pending()
	case *objects.EventChannel:
		c.EventsWaiting += o.Socket.Pending()
	case *objects.PD:
		c.Domains++
		g.Snapshot.Domains = append(g.Snapshot.Domains,
			inspect.Domain{Object: g.of(o, g.s.Devices[o.Context.Dev].Of), Number: o.Number})
	case *objects.MR:
		g.region(c, o)
	case *objects.MW:
		g.window(o)
	case *objects.CQ:
		c.CQs++
		g.cq(o)
	case *objects.QP:
		c.QPs++
		g.qp(o)
	case *objects.SRQ:
		g.srq(o)
	case *objects.ID:
		c.IDs++
		g.id(o)
	}
}

// port returns the name of port dev; "" for any.
func (g *Gathering) port(dev int) string {
	if dev < 0 || dev >= len(g.s.Devices) {
		return ""
	}
	return g.s.Devices[dev].Name
}

func (g *Gathering) region(c *inspect.Client, o *objects.MR) {
	r := o.Region
	path := inspect.PathShared
	c.Regions++
	if r.Shared() {
		c.SharedRegions++
		c.SharedBytes += r.Length()
	} else {
		path = inspect.PathFallback
		c.FallbackRegions++
		c.FallbackBytes += r.Length()
	}
	g.Snapshot.Regions = append(g.Snapshot.Regions, inspect.Region{Object: g.of(o, g.s.Devices[o.PD.Context.Dev].Of),
		Domain: r.PD, Start: r.Base(), Length: r.Length(), LKey: uint32(r.STag), RKey: uint32(r.STag),
		Access: r.Access, Path: path, Reason: o.Why})
}

func (g *Gathering) window(o *objects.MW) {
	v := inspect.Window{Object: g.of(o, g.s.Devices[o.PD.Context.Dev].Of), Domain: o.PD.Number, Type: abi.MWType1,
		RKey: uint32(o.Window.STag())}
	if o.Window.Type2 {
		v.Type = abi.MWType2
	}
	if b := o.Window.Bound(); b != nil {
		v.Bound, v.Region, v.Start, v.Length = true, uint32(b.Of().STag), b.Base(), b.Length()
		v.Access, v.QPN = b.Access, b.Stream()
	}
	g.Snapshot.Windows = append(g.Snapshot.Windows, v)
}

var armNames = [...]string{"no", "solicited", "any"}

func (g *Gathering) cq(o *objects.CQ) {
	q := o.CQ
	v := inspect.CQ{Object: g.of(o, g.s.Devices[o.Context.Dev].Of), Depth: int(q.Ring.Capacity()),
		Fill: int(q.Ring.Pending()), Channel: q.Channel != nil, Events: q.Events,
		Overrun: q.Overrun(), QPs: q.Users()}
	v.Armed = armNames[min(q.Ring.Arm(), 2)] // the client can write any value
	g.Snapshot.CQs = append(g.Snapshot.CQs, v)
}

func (g *Gathering) srq(o *objects.SRQ) {
	shared := o.Queue.Shared()
	g.Snapshot.SRQs = append(g.Snapshot.SRQs,
		inspect.SRQ{Object: g.of(o, g.s.Devices[o.PD.Context.Dev].Of), Domain: o.PD.Number,
			Depth: o.Queue.Slots(), Fill: o.Queue.Posted(),
			Limit: int(shared.Limit), QPs: shared.Users(), Number: shared.Number})
}

// handleOf returns the handle of a queue, 0 for nil.
func handleOf(c *qp.CQ) uint32 {
	if c == nil {
		return 0
	}
	return c.Handle
}

func (g *Gathering) qp(o *objects.QP) {
	q, f := o.QP, o.QP.Fill()
	v := inspect.QP{Object: g.of(o, g.port(o.Port())), QPN: q.QPN, Domain: q.PD,
		Type: abi.QPTypeText(q.Type), State: inspect.QPStates[q.State()], SendCQ: handleOf(q.SendCQ),
		RecvCQ:    handleOf(q.RecvCQ),
		SendDepth: f.SendDepth, SendFill: f.SendFill, RecvDepth: f.RecvDepth, RecvFill: f.RecvFill,
		ReadsOut: f.ReadsOut, ReadsIn: f.ReadsIn, FallbackWaiting: f.FallbackWaiting, Work: work(&q.Stats)}
	if why := q.Why(); why != 0 && (q.State() == abi.QPSErr || q.State() == abi.QPSSQE) {
		v.Error = why.String() + " " + words.What(why)
	}
	if c := q.Connection(); c != nil {
		v.Device = g.port(c.Dev)
		v.Local = c.Local.String()
		if c.Peer.IsValid() { // UD queue pairs have no peer
			v.Peer = c.Peer.String()
			v.Path, v.Wire = wireState(q.Carrier(), g.Worker.Engine.Now())
		}
	}
	g.Snapshot.QPs = append(g.Snapshot.QPs, v)
	g.numbered(o)
}

// numbered adds the connection of a queue pair connected by ibv_modify_qp. The connection's
// handle is the queue pair's.
func (g *Gathering) numbered(o *objects.QP) {
	q := o.QP
	p := g.Worker.Numbers.Pair(q)
	c := q.Connection()
	if p == nil || c == nil {
		return
	}
	n := inspect.Connection{Object: g.of(o, g.port(p.Dev)), State: p.State().String(),
		Side: inspect.SideNumber, Local: c.Local.String(), Peer: c.Peer.String(), QPN: q.QPN, Reads: int(c.ORD),
		Serves: int(c.IRD),
		Tries:  p.Tries(), Work: work(&q.Stats)}
	n.Created = g.clock.time(p.Created)
	n.Path, n.Wire = wireState(q.Carrier(), g.Worker.Engine.Now())
	g.Snapshot.Connections = append(g.Snapshot.Connections, n)
}

// wireState returns a connection's state if it uses the wire.
func wireState(carrier any, now clock.Time) (path string, w *inspect.Wire) {
	if _, awaits := carrier.(*connect.Awaiting); awaits {
		return "", nil
	}
	if c, ok := carrier.(interface{ Inspect() (mpa.State, bool) }); ok {
		return streamState(c.Inspect())
	}
	if c, ok := carrier.(interface{ Inspect() (roce.State, bool) }); ok {
		return packetState(c.Inspect())
	}
	c, ok := carrier.(interface{ Inspect() (trp.State, bool) })
	if !ok {
		return inspect.PathHost, nil
	}
	s, ok := c.Inspect()
	if !ok {
		return inspect.PathHost, nil
	}
	w = &inspect.Wire{State: s.State, Protocol: inspect.ProtocolUDP, Payload: s.Payload, PathMTU: s.PathMTU,
		InFlight: s.Path.InFlight,
		Window:   s.Path.Cwnd, Credits: s.Path.PeerCredits, Held: s.Path.HeldNow, RTTNs: int64(s.Path.SRTT),
		RTTVarNs: int64(s.Path.RTTVar), MinRTTNs: int64(s.Path.MinRTT), TimeoutNs: int64(s.Path.RTO),
		Traffic: traffic(&s.Traffic)}
	if s.Path.Heard >= 0 {
		w.SilentNs = max(1, int64(now-s.Path.Heard))
	}
	return inspect.PathWire, w
}

// streamState is wireState for a connection over TCP.
func streamState(s mpa.State, ok bool) (path string, w *inspect.Wire) {
	if !ok {
		return inspect.PathHost, nil
	}
	return inspect.PathWire, &inspect.Wire{State: s.State, Protocol: inspect.ProtocolTCP,
		SilentNs: max(1, int64(s.Silent)), Payload: s.Payload, PathMTU: s.PathMTU,
		InFlight: s.InFlight, Window: s.Window, RTTNs: int64(s.SRTT), RTTVarNs: int64(s.RTTVar), MinRTTNs: int64(s.MinRTT),
		TimeoutNs: int64(s.Timeout), Traffic: streamTraffic(&s.Traffic)}
}

// packetState is wireState for a connection over RoCEv2.
func packetState(s roce.State, ok bool) (path string, w *inspect.Wire) {
	if !ok {
		return "", nil
	}
	return inspect.PathWire, &inspect.Wire{State: s.State, Payload: s.Payload, PathMTU: s.PathMTU, InFlight: s.InFlight,
		Window: s.Window,
		RTTNs:  int64(s.SRTT), TimeoutNs: int64(s.Timeout)}
}

func streamTraffic(t *mpa.Traffic) (out inspect.Traffic) {
	streamCounts.Into(&out, t)
	return out
}

func work(q *qp.Counters) (w inspect.Work) {
	workCounts.Into(&w, q)
	return w
}

func traffic(t *trp.Traffic) (out inspect.Traffic) {
	trafficCounts.Into(&out, t)
	return out
}

var sides = [...]string{cm.SideNone: "", cm.SideActive: "active", cm.SidePassive: "passive"}

func (g *Gathering) id(o *objects.ID) {
	v := o.View()
	if v.Listening {
		g.Snapshot.Listeners = append(g.Snapshot.Listeners, inspect.Listener{Object: g.of(o, g.port(v.Dev)),
			Local: v.Local.String(), Backlog: v.Backlog, Pending: v.Pending})
		return
	}
	n := inspect.Connection{Object: g.of(o, g.port(v.Dev)), State: v.State, Side: sides[v.Side], Tries: v.Tries}
	if v.Local.IsValid() {
		n.Local = v.Local.String()
	}
	if v.Peer.IsValid() {
		n.Peer = v.Peer.String()
	}
	if q := connect.QPOf(v.QP); q != nil {
		n.QPN, n.Work = q.QPN, work(&q.Stats)
	}
	if c := connect.Common(v.Conn); c != nil {
		n.Reads, n.Serves = int(c.ORD), int(c.IRD)
		n.Path, n.Wire = wireState(v.Conn, g.Worker.Engine.Now())
	}
	g.Snapshot.Connections = append(g.Snapshot.Connections, n)
}

// sortSnapshot sorts objects by creation time, and counts the users of protection domains.
func sortSnapshot(s *inspect.Snapshot) {
	slices.SortFunc(s.Clients, func(a, b inspect.Client) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Domains, func(a, b inspect.Domain) int { return a.Made(b.Object) })
	slices.SortFunc(s.Regions, func(a, b inspect.Region) int { return a.Made(b.Object) })
	slices.SortFunc(s.Windows, func(a, b inspect.Window) int { return a.Made(b.Object) })
	slices.SortFunc(s.CQs, func(a, b inspect.CQ) int { return a.Made(b.Object) })
	slices.SortFunc(s.QPs, func(a, b inspect.QP) int { return a.Made(b.Object) })
	slices.SortFunc(s.SRQs, func(a, b inspect.SRQ) int { return a.Made(b.Object) })
	slices.SortFunc(s.Connections, func(a, b inspect.Connection) int { return a.Made(b.Object) })
	slices.SortFunc(s.Listeners, func(a, b inspect.Listener) int { return a.Made(b.Object) })
	slices.SortStableFunc(s.Limits, func(a, b inspect.Limit) int {
		return cmp.Or(-cmp.Compare(a.Of, b.Of), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Client, b.Client))
	})
	slices.SortStableFunc(s.Warnings, func(a, b inspect.Warning) int { return a.Warned.Compare(b.Warned) })
	slices.SortFunc(s.Neighbours, func(a, b inspect.Neighbour) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address))
	})
	slices.SortFunc(s.Groups, func(a, b inspect.Group) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address))
	})
	domains := map[uint64]*inspect.Domain{}
	for i := range s.Domains {
		domains[s.Domains[i].Number] = &s.Domains[i]
	}
	for i := range s.Regions {
		if d := domains[s.Regions[i].Domain]; d != nil {
			d.Regions++
		}
	}
	for i := range s.QPs {
		if d := domains[s.QPs[i].Domain]; d != nil {
			d.QPs++
		}
	}
}
