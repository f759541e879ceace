package report

import (
	"fmt"
	"strconv"
	"strings"

	"urdma/inspect"
)

// The columns that urdma show prints.
var ports = []column[inspect.Port]{
	{"NAME", func(p *inspect.Port) string { return p.Name }},
	{"DRIVER", func(p *inspect.Port) string { return dash(p.Driver) }},
	{"INTERFACE", func(p *inspect.Port) string { return dash(p.Interface) }},
	{"ADDRESS", ofPort(func(p *inspect.Port) string { return p.Address })},
	{"MAC", ofPort(func(p *inspect.Port) string { return p.MAC })},
	{"MTU", ofPort(func(p *inspect.Port) string { return strconv.Itoa(p.MTU) })},
	{"TRANSPORT", func(p *inspect.Port) string { return dash(p.Transport) }},
	{"PROTOCOL", func(p *inspect.Port) string { return dash(p.Protocol) }},
	{"LINK", ofPort(func(p *inspect.Port) string { return link(p.LinkUp) })},
	{"DOWNS", ofPort(func(p *inspect.Port) string { return number(p.LinkDowns) })},
	{"RX-PACKETS", func(p *inspect.Port) string { return number(p.RxPackets) }},
	{"TX-PACKETS", func(p *inspect.Port) string { return number(p.TxPackets) }},
	{"RX-BYTES", func(p *inspect.Port) string { return Bytes(p.RxBytes) }},
	{"TX-BYTES", func(p *inspect.Port) string { return Bytes(p.TxBytes) }},
	{"RX-DROPPED", ofPort(func(p *inspect.Port) string { return number(p.RxDropped) })},
	{"TX-DROPPED", ofPort(func(p *inspect.Port) string { return number(p.TxDropped) })},
	{"ERRORS", ofPort(func(p *inspect.Port) string { return number(p.RxErrors) })},
	{"NO-BUFFER", ofPort(func(p *inspect.Port) string { return number(p.NoBuffer) })},
	{"DISCARDED", ofPort(func(p *inspect.Port) string { return number(discarded(p)) })},
}

func discarded(p *inspect.Port) (n uint64) {
	for _, v := range p.Discarded {
		n += v
	}
	return n
}

var clients = []column[inspect.Client]{
	{"CLIENT", func(c *inspect.Client) string { return number(c.ID) }},
	{"PID", func(c *inspect.Client) string { return pid(c.PID) }},
	{"UID", func(c *inspect.Client) string { return strconv.Itoa(c.UID) }},
	{"CONNECTED", func(c *inspect.Client) string { return instant(c.Connected) }},
	{"CTX", func(c *inspect.Client) string { return strconv.Itoa(c.Contexts) }},
	{"PD", func(c *inspect.Client) string { return strconv.Itoa(c.Domains) }},
	{"MR", func(c *inspect.Client) string { return strconv.Itoa(c.Regions) }},
	{"CQ", func(c *inspect.Client) string { return strconv.Itoa(c.CQs) }},
	{"QP", func(c *inspect.Client) string { return strconv.Itoa(c.QPs) }},
	{"ID", func(c *inspect.Client) string { return strconv.Itoa(c.IDs) }},
	{"SHARED", func(c *inspect.Client) string { return placed(c.SharedRegions, c.SharedBytes) }},
	{"FALLBACK", func(c *inspect.Client) string { return placed(c.FallbackRegions, c.FallbackBytes) }},
	{"EVENTS", func(c *inspect.Client) string { return strconv.Itoa(c.EventsWaiting) }},
	{"COMMAND", func(c *inspect.Client) string { return command(c) }},
}

var domains = []column[inspect.Domain]{
	{"PD", func(d *inspect.Domain) string { return number(d.Number) }},
	{"HANDLE", func(d *inspect.Domain) string { return handle(d.Handle) }},
	{"CREATED", func(d *inspect.Domain) string { return instant(d.Created) }},
	{"DEVICE", func(d *inspect.Domain) string { return dash(d.Device) }},
	{"MR", func(d *inspect.Domain) string { return strconv.Itoa(d.Regions) }},
	{"QP", func(d *inspect.Domain) string { return strconv.Itoa(d.QPs) }},
	{"PID", func(d *inspect.Domain) string { return pid(d.PID) }},
	{"COMMAND", func(d *inspect.Domain) string { return dash(d.Command) }},
}

var regions = []column[inspect.Region]{
	{"LKEY", func(r *inspect.Region) string { return fmt.Sprintf("%08x", r.LKey) }},
	{"RKEY", func(r *inspect.Region) string { return fmt.Sprintf("%08x", r.RKey) }},
	{"HANDLE", func(r *inspect.Region) string { return handle(r.Handle) }},
	{"CREATED", func(r *inspect.Region) string { return instant(r.Created) }},
	{"PD", func(r *inspect.Region) string { return number(r.Domain) }},
	{"START", func(r *inspect.Region) string { return fmt.Sprintf("%016x", r.Start) }},
	{"LENGTH", func(r *inspect.Region) string { return Bytes(r.Length) }},
	{"ACCESS", func(r *inspect.Region) string { return access(r.Access) }},
	{"PATH", func(r *inspect.Region) string { return r.Path }},
	{"REASON", func(r *inspect.Region) string { return dash(r.Reason) }},
	{"PID", func(r *inspect.Region) string { return pid(r.PID) }},
	{"COMMAND", func(r *inspect.Region) string { return dash(r.Command) }},
}

var windows = []column[inspect.Window]{
	{"RKEY", func(w *inspect.Window) string { return fmt.Sprintf("%08x", w.RKey) }},
	{"HANDLE", func(w *inspect.Window) string { return handle(w.Handle) }},
	{"CREATED", func(w *inspect.Window) string { return instant(w.Created) }},
	{"PD", func(w *inspect.Window) string { return number(w.Domain) }},
	{"TYPE", func(w *inspect.Window) string { return strconv.Itoa(w.Type) }},
	{"MR", bound(func(w *inspect.Window) string { return fmt.Sprintf("%08x", w.Region) })},
	{"START", bound(func(w *inspect.Window) string { return fmt.Sprintf("%016x", w.Start) })},
	{"LENGTH", bound(func(w *inspect.Window) string { return Bytes(w.Length) })},
	{"ACCESS", bound(func(w *inspect.Window) string { return access(w.Access) })},
	{"QPN", bound(func(w *inspect.Window) string { return qpn(w.QPN) })},
	{"PID", func(w *inspect.Window) string { return pid(w.PID) }},
	{"COMMAND", func(w *inspect.Window) string { return dash(w.Command) }},
}

// bound is a cell that is a dash for a window that is not bound.
func bound(cell func(*inspect.Window) string) func(*inspect.Window) string {
	return func(w *inspect.Window) string {
		if !w.Bound {
			return dash("")
		}
		return cell(w)
	}
}

func xrcNumber(n uint32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%06x", n)
}

var srqs = []column[inspect.SRQ]{
	{"HANDLE", func(r *inspect.SRQ) string { return handle(r.Handle) }},
	{"CREATED", func(r *inspect.SRQ) string { return instant(r.Created) }},
	{"DEVICE", func(r *inspect.SRQ) string { return dash(r.Device) }},
	{"PD", func(r *inspect.SRQ) string { return number(r.Domain) }},
	{"FILL", func(r *inspect.SRQ) string { return fill(r.Fill, r.Depth) }},
	{"LIMIT", func(r *inspect.SRQ) string { return strconv.Itoa(r.Limit) }},
	{"QPS", func(r *inspect.SRQ) string { return strconv.Itoa(r.QPs) }},
	{"XRC", func(r *inspect.SRQ) string { return xrcNumber(r.Number) }},
	{"PID", func(r *inspect.SRQ) string { return pid(r.PID) }},
	{"COMMAND", func(r *inspect.SRQ) string { return dash(r.Command) }},
}

var cqs = []column[inspect.CQ]{
	{"HANDLE", func(c *inspect.CQ) string { return handle(c.Handle) }},
	{"CREATED", func(c *inspect.CQ) string { return instant(c.Created) }},
	{"DEVICE", func(c *inspect.CQ) string { return dash(c.Device) }},
	{"STATE", func(c *inspect.CQ) string { return cqState(c.Overrun) }},
	{"FILL", func(c *inspect.CQ) string { return fill(c.Fill, c.Depth) }},
	{"CHANNEL", func(c *inspect.CQ) string { return yes(c.Channel) }},
	{"ARMED", func(c *inspect.CQ) string { return c.Armed }},
	{"EVENTS", func(c *inspect.CQ) string { return number(c.Events) }},
	{"USERS", func(c *inspect.CQ) string { return strconv.Itoa(c.QPs) }},
	{"PID", func(c *inspect.CQ) string { return pid(c.PID) }},
	{"COMMAND", func(c *inspect.CQ) string { return dash(c.Command) }},
}

var qps = []column[inspect.QP]{
	{"QPN", func(q *inspect.QP) string { return qpn(q.QPN) }},
	{"CREATED", func(q *inspect.QP) string { return instant(q.Created) }},
	{"DEVICE", func(q *inspect.QP) string { return dash(q.Device) }},
	{"PD", func(q *inspect.QP) string { return number(q.Domain) }},
	{"TYPE", func(q *inspect.QP) string { return q.Type }},
	{"STATE", func(q *inspect.QP) string { return q.State }},
	{"ERROR", func(q *inspect.QP) string { number, _, _ := strings.Cut(q.Error, " "); return dash(number) }},
	{"S-CQ", func(q *inspect.QP) string { return handle(q.SendCQ) }},
	{"R-CQ", func(q *inspect.QP) string { return handle(q.RecvCQ) }},
	{"SEND", func(q *inspect.QP) string { return fill(q.SendFill, q.SendDepth) }},
	{"RECV", func(q *inspect.QP) string { return fill(q.RecvFill, q.RecvDepth) }},
	{"PATH", func(q *inspect.QP) string { return dash(q.Path) }},
	{"PEER", func(q *inspect.QP) string { return dash(q.Peer) }},
	{"MTU", func(q *inspect.QP) string { return pathMTU(q.Wire) }},
	{"WINDOW", func(q *inspect.QP) string { return window(q.Wire) }},
	{"RTT", func(q *inspect.QP) string { return rtt(q.Wire) }},
	{"RESENT", func(q *inspect.QP) string { return resent(q.Wire) }},
	{"MSG-OUT", func(q *inspect.QP) string { return number(q.MessagesSent) }},
	{"MSG-IN", func(q *inspect.QP) string { return number(q.MessagesRecv) }},
	{"OUT", func(q *inspect.QP) string { return Bytes(q.BytesSent) }},
	{"IN", func(q *inspect.QP) string { return Bytes(q.BytesRecv) }},
	{"FALLBACK", func(q *inspect.QP) string { return number(q.FallbackJobs) }},
	{"PID", func(q *inspect.QP) string { return pid(q.PID) }},
	{"COMMAND", func(q *inspect.QP) string { return dash(q.Command) }},
}

var connections = []column[inspect.Connection]{
	{"ID", func(c *inspect.Connection) string { return handle(c.Handle) }},
	{"CREATED", func(c *inspect.Connection) string { return instant(c.Created) }},
	{"DEVICE", func(c *inspect.Connection) string { return dash(c.Device) }},
	{"STATE", func(c *inspect.Connection) string { return c.State }},
	{"SIDE", func(c *inspect.Connection) string { return dash(c.Side) }},
	{"LOCAL", func(c *inspect.Connection) string { return dash(c.Local) }},
	{"PEER", func(c *inspect.Connection) string { return dash(c.Peer) }},
	{"QPN", func(c *inspect.Connection) string { return qpn(c.QPN) }},
	{"PATH", func(c *inspect.Connection) string { return dash(c.Path) }},
	{"READS", func(c *inspect.Connection) string { return fmt.Sprintf("%d/%d", c.Reads, c.Serves) }},
	{"TRIES", func(c *inspect.Connection) string { return strconv.Itoa(c.Tries) }},
	{"MTU", func(c *inspect.Connection) string { return pathMTU(c.Wire) }},
	{"WINDOW", func(c *inspect.Connection) string { return window(c.Wire) }},
	{"RTT", func(c *inspect.Connection) string { return rtt(c.Wire) }},
	{"RESENT", func(c *inspect.Connection) string { return resent(c.Wire) }},
	{"OUT", func(c *inspect.Connection) string { return Bytes(c.BytesSent) }},
	{"IN", func(c *inspect.Connection) string { return Bytes(c.BytesRecv) }},
	{"PID", func(c *inspect.Connection) string { return pid(c.PID) }},
	{"COMMAND", func(c *inspect.Connection) string { return dash(c.Command) }},
}

var listeners = []column[inspect.Listener]{
	{"ID", func(l *inspect.Listener) string { return handle(l.Handle) }},
	{"CREATED", func(l *inspect.Listener) string { return instant(l.Created) }},
	{"DEVICE", func(l *inspect.Listener) string { return orAll(l.Device) }},
	{"LOCAL", func(l *inspect.Listener) string { return l.Local }},
	{"PENDING", func(l *inspect.Listener) string { return fill(l.Pending, l.Backlog) }},
	{"PID", func(l *inspect.Listener) string { return pid(l.PID) }},
	{"COMMAND", func(l *inspect.Listener) string { return dash(l.Command) }},
}

var peers = []column[inspect.Peer]{
	{"ADDRESS", func(p *inspect.Peer) string { return p.Address }},
	{"PORT", func(p *inspect.Peer) string { return p.Port }},
	{"PROTOCOL", func(p *inspect.Peer) string { return p.Protocol }},
	{"QPS", func(p *inspect.Peer) string { return strconv.Itoa(p.QPs) }},
	{"HEARD", func(p *inspect.Peer) string { return ago(p.SilentNs) }},
	{"RTT", func(p *inspect.Peer) string { return Duration(p.RTTNs) }},
	{"MIN-RTT", func(p *inspect.Peer) string { return Duration(p.MinRTTNs) }},
	{"MTU", func(p *inspect.Peer) string { return strconv.Itoa(p.PathMTU) }},
	{"SEGMENTS", func(p *inspect.Peer) string { return number(p.Segments) }},
	{"RESENT", func(p *inspect.Peer) string {
		return number(p.Resent) + " (" + Percent(float64(p.Resent), float64(p.Segments)) + ")"
	}},
}

func ago(ns int64) string {
	if ns == 0 {
		return "never"
	}
	return Duration(ns) + " ago"
}

var workers = []column[inspect.Worker]{
	{"WORKER", func(v *inspect.Worker) string { return strconv.Itoa(v.Number) }},
	{"CORE", func(v *inspect.Worker) string { return strconv.Itoa(v.Core) }},
	{"CLIENTS", func(v *inspect.Worker) string { return strconv.Itoa(v.Clients) }},
	{"QPS", func(v *inspect.Worker) string { return strconv.Itoa(v.QPs) }},
	{"TURNS", func(v *inspect.Worker) string { return number(v.Turns) }},
	{"BUSY", func(v *inspect.Worker) string { return Percent(float64(v.BusyTurns), float64(v.Turns)) }},
	{"SLEEPS", func(v *inspect.Worker) string { return number(v.Sleeps) }},
	{"ASLEEP", func(v *inspect.Worker) string { return Duration(int64(v.AsleepNs)) }},
	{"GAP", func(v *inspect.Worker) string { return Duration(v.LongestGapNs) }},
	{"HANDED-ON", func(v *inspect.Worker) string { return Percent(float64(v.HandedOn), float64(v.Received)) }},
}

var neighbours = []column[inspect.Neighbour]{
	{"ADDRESS", func(n *inspect.Neighbour) string { return n.Address }},
	{"PORT", func(n *inspect.Neighbour) string { return n.Port }},
	{"MAC", func(n *inspect.Neighbour) string { return dash(n.MAC) }},
	{"STATE", func(n *inspect.Neighbour) string { return n.State }},
}

var groups = []column[inspect.Group]{
	{"ADDRESS", func(g *inspect.Group) string { return g.Address }},
	{"PORT", func(g *inspect.Group) string { return g.Port }},
	{"MAC", func(g *inspect.Group) string { return g.MAC }},
	{"JOINED", func(g *inspect.Group) string { return strconv.Itoa(g.Joined) }},
}

var limits = []column[inspect.Limit]{
	{"OF", func(l *inspect.Limit) string { return l.Of }},
	{"UID", func(l *inspect.Limit) string { return dash(uid(l.UID)) }},
	{"PID", func(l *inspect.Limit) string { return pid(l.PID) }},
	{"LIMIT", func(l *inspect.Limit) string { return l.Name }},
	{"USED", func(l *inspect.Limit) string { return amount(l.Name, l.Used) }},
	{"ALLOWED", func(l *inspect.Limit) string {
		if l.Allowed == 0 {
			return "any"
		}
		return amount(l.Name, l.Allowed)
	}},
	{"COMMAND", func(l *inspect.Limit) string { return dash(l.Command) }},
}

func uid(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// amount formats n of the resource name.
func amount(name string, n uint64) string {
	if strings.HasSuffix(name, "_bytes") {
		return Bytes(n)
	}
	return number(n)
}

var injections = []column[inspect.Injection]{
	{"NUMBER", func(i *inspect.Injection) string { return handle(i.Number) }},
	{"CREATED", func(i *inspect.Injection) string { return instant(i.Created) }},
	{"STATE", func(i *inspect.Injection) string { return i.State }},
	{"SEEN", func(i *inspect.Injection) string { return number(i.Seen) }},
	{"HITS", func(i *inspect.Injection) string { return number(i.Hits) }},
	{"OWN", func(i *inspect.Injection) string { return yes(i.Own) }},
	{"STATEMENT", func(i *inspect.Injection) string { return i.Statement }},
	{"PID", func(i *inspect.Injection) string { return pid(i.PID) }},
	{"COMMAND", func(i *inspect.Injection) string { return dash(i.Command) }},
}

var warnings = []column[inspect.Warning]{
	{"NUMBER", func(w *inspect.Warning) string { return w.Number }},
	{"WARNED", func(w *inspect.Warning) string { return instant(w.Warned) }},
	{"PID", func(w *inspect.Warning) string { return pid(w.PID) }},
	{"COMMAND", func(w *inspect.Warning) string { return dash(w.Command) }},
	{"QPN", func(w *inspect.Warning) string { return qpn(w.QPN) }},
	{"WHAT", func(w *inspect.Warning) string { return w.What }},
	{"WHERE", func(w *inspect.Warning) string { return w.Text }},
}
