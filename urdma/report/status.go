package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"urdma/inspect"
)

// Status prints a summary of a urdmad; with details also its measurements of the machine and the state of its poll
// loop.
func Status(w io.Writer, s *inspect.Snapshot, details bool) error {
	s = withoutOwn(s)
	d := &s.Daemon
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "urdmad\t%s, pid %d, uid %d, up %s\n", d.Version, d.PID, d.UID, Span(s.Taken.Sub(d.Started)))
	fmt.Fprintf(t, "socket\t%s\n", d.Socket)
	fmt.Fprintf(t, "configuration\t%s\n", dash(d.Config))
	if details && d.Scheduling != nil {
		fmt.Fprintf(t, "scheduler\t%s\n", scheduling(d.Scheduling))
	}
	up := s.Taken.Sub(d.Started)
	switch {
	case !details:
	case len(s.Workers) > 0:
		for i := range s.Workers {
			w := &s.Workers[i]
			fmt.Fprintf(t, "worker %d\t%s; %s, %s\n", i, loop(&w.Loop, up), count(w.Clients, "client"),
				count(w.QPs, "queue pair"))
		}
	case s.Loop != nil:
		fmt.Fprintf(t, "poll loop\t%s\n", loop(s.Loop, up))
	}
	fmt.Fprintf(t, "clients\t%s\n", dash(clientNames(s.Clients)))
	if s.Responder != nil {
		fmt.Fprintf(t, "responder\t%s\n", responder(s.Responder))
	}
	if details {
		fmt.Fprintf(t, "objects\t%s, %s\n", count(len(s.Domains), "protection domain"), count(len(s.CQs), "completion queue"))
	}
	fmt.Fprintf(t, "connections\t%d, %s\n", len(s.Connections), count(len(s.Listeners), "listener"))
	fmt.Fprintf(t, "queue pairs\t%s\n", states(s.QPs))
	fmt.Fprintf(t, "memory\t%s\n", memory(s.Clients))
	all := s.AllWork()
	fmt.Fprintf(t, "messages\t%d out (%s), %d in (%s)\n", all.MessagesSent, Bytes(all.BytesSent), all.MessagesRecv,
		Bytes(all.BytesRecv))
	fmt.Fprintf(t, "losses\t%s\n", losses(s.AllTraffic()))
	if details && s.Totals != nil {
		fmt.Fprintf(t, "terminates\t%s\n", terminates(s.Totals))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := write(w, brief, s.Ports); err != nil {
		return err
	}
	for _, p := range s.Ports {
		if details && p.Offloads != "" {
			fmt.Fprintf(w, "%s %s\n", p.Name, p.Offloads)
		}
	}
	if s.Restricted {
		_, err := fmt.Fprintln(w, "\nOnly objects of your own processes are shown; urdmad belongs to another user.")
		return err
	}
	return nil
}

// withoutOwn returns a snapshot without the client that urdmad itself is while its responder answers urdma ping; it
// has a line of its own.
func withoutOwn(s *inspect.Snapshot) *inspect.Snapshot {
	out := *s
	others := func(o *inspect.Object) bool { return o.PID != s.Daemon.PID }
	out.Clients = keep(s.Clients, func(c *inspect.Client) bool { return c.PID != s.Daemon.PID })
	out.Domains = keep(s.Domains, func(d *inspect.Domain) bool { return others(&d.Object) })
	out.CQs = keep(s.CQs, func(c *inspect.CQ) bool { return others(&c.Object) })
	out.QPs = keep(s.QPs, func(q *inspect.QP) bool { return others(&q.Object) })
	out.Connections = keep(s.Connections, func(c *inspect.Connection) bool { return others(&c.Object) })
	out.Listeners = keep(s.Listeners, func(l *inspect.Listener) bool { return others(&l.Object) })
	return &out
}

var brief = []column[inspect.Port]{
	{"PORT", func(p *inspect.Port) string { return p.Name }},
	{"ADDRESS", func(p *inspect.Port) string { return p.Address }},
	{"DRIVER", func(p *inspect.Port) string { return dash(p.Driver) }},
	{"TRANSPORT", func(p *inspect.Port) string { return p.Transport }},
	{"LINK", func(p *inspect.Port) string { return link(p.LinkUp) }},
	{"RX", func(p *inspect.Port) string { return Bytes(p.RxBytes) }},
	{"TX", func(p *inspect.Port) string { return Bytes(p.TxBytes) }},
	{"DROPPED", func(p *inspect.Port) string { return number(p.RxDropped + p.TxDropped + p.NoBuffer) }},
	{"ERRORS", func(p *inspect.Port) string { return number(p.RxErrors) }},
}

func loop(l *inspect.Loop, up time.Duration) string {
	where := "on any core"
	if l.Core >= 0 {
		where = fmt.Sprintf("on core %d", l.Core)
	}
	return fmt.Sprintf("%s, %s of turns busy, asleep %s of the time, longest gap %s, %d page faults", where,
		Percent(float64(l.BusyTurns), float64(l.Turns)), Percent(float64(l.AsleepNs), float64(up)), Duration(l.LongestGapNs),
		l.MinorFaults+l.MajorFaults)
}

// scheduling prints the measured times of yields and sleeps, and the settings derived from them.
func scheduling(s *inspect.Scheduling) string {
	yields := "yields let others run"
	if s.KeepsCore {
		yields = "who comes from a sleep keeps the core when it yields"
	}
	idle := "never sleeps"
	if s.YieldForNs != math.MaxInt64 {
		idle = "yields for " + Duration(s.YieldForNs)
	}
	return fmt.Sprintf("yield %s, sleep %s, wake-up %s, clock %s; %s; an idle worker %s, a yield under %s met nobody",
		Duration(s.YieldNs), Duration(s.SleepNs), Duration(s.WakeNs), Duration(s.ClockNs), yields, idle, Duration(s.AloneNs))
}

// responder says whether other hosts' urdma ping is answered.
func responder(r *inspect.Responder) string {
	if r.Serves == "off" {
		return "off: urdma ping of other hosts is refused"
	}
	from := "any host"
	if len(r.Allow) > 0 {
		from = strings.Join(r.Allow, ", ")
	}
	return fmt.Sprintf("answers urdma ping from %s, port %d; %d open, %d served, %d refused", from, r.Port, r.Open,
		r.Served, r.Refused)
}

const namesShown = 4

func clientNames(list []inspect.Client) string {
	var names []string
	for i := range list {
		if i == namesShown {
			names = append(names, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s[%s]", dash(list[i].Command), pid(list[i].PID)))
	}
	return strings.Join(names, ", ")
}

func states(list []inspect.QP) string {
	by := map[string]int{}
	for i := range list {
		by[list[i].State]++
	}
	text := fmt.Sprint(len(list))
	for i, name := range slices.Sorted(maps.Keys(by)) {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += fmt.Sprintf("%s%d %s", sep, by[name], name)
	}
	return text
}

func memory(list []inspect.Client) string {
	var c inspect.Client
	for i := range list {
		c.SharedRegions += list[i].SharedRegions
		c.SharedBytes += list[i].SharedBytes
		c.FallbackRegions += list[i].FallbackRegions
		c.FallbackBytes += list[i].FallbackBytes
	}
	return fmt.Sprintf("%s on shared pages (%s), %d on the fallback path (%s)", count(c.SharedRegions, "region"),
		Bytes(c.SharedBytes),
		c.FallbackRegions, Bytes(c.FallbackBytes))
}

func losses(ports []inspect.Traffic) string {
	var t inspect.Traffic
	for i := range ports {
		t.Add(&ports[i])
	}
	return fmt.Sprintf("%d of %d segments resent (%s), %s", t.Resent, t.Segments,
		Percent(float64(t.Resent), float64(t.Segments)),
		count(int(t.Timeouts), "timeout"))
}

func terminates(t *inspect.Totals) string {
	sum := func(list []inspect.Terminate) (n uint64) {
		for i := range list {
			n += list[i].Count
		}
		return n
	}
	return fmt.Sprintf("%d sent, %d received", sum(t.TerminatesSent), sum(t.TerminatesGot))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
