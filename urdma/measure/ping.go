package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"urdma/inspect"
	"urdma/urdma/report"
	"urdma/verbs/probe"
)

// PingOptions are the options of a ping.
type PingOptions struct {
	Options
	Count    int // 0: until ctx ends
	Interval time.Duration
	Bytes    int
	Quiet    bool // no line for each Read
}

// PingResult is the result of a ping.
type PingResult struct {
	Peer     string  `json:"peer"`
	Bytes    int     `json:"bytes"`
	Path     string  `json:"path"` // "host": within one urdmad; "wire"
	Reads    int     `json:"reads"`
	Answered int     `json:"answered"`
	Warning  string  `json:"warning,omitempty"`
	Times    []int64 `json:"round_trips_ns"` // of the Reads that were answered, in order; the last 100,000
	Packets
}

// Lost is the number of Reads without an answer.
func (r *PingResult) Lost() int { return r.Reads - r.Answered }

// mostTimes is the largest length of PingResult.Times.
const mostTimes = 100_000

// MaxPing is the largest Read of a ping, in bytes.
const MaxPing = probe.Bytes

// pinger is a running ping.
type pinger struct {
	o   *PingOptions
	out io.Writer
	r   *PingResult
	way *way // nil: a new connection is needed
}

// Ping makes RDMA Reads of a peer's memory, one after the other, and writes a line for each. It returns an error if
// the first connection fails; if a later one breaks, it connects again.
func Ping(ctx context.Context, out io.Writer, o *PingOptions) (*PingResult, error) {
	p := &pinger{o: o, out: out, r: &PingResult{Peer: o.Peer, Bytes: o.Bytes, Times: []int64{}}}
	w, err := connect(ctx, &o.Options)
	if err != nil {
		return nil, err
	}
	p.way = w
	port := p.begin()
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.ping(ctx)
		if p.r.Answered == 1 && port != nil && p.r.Path == inspect.PathWire && p.r.Warning == "" {
			if p.r.Warning = checkMTU(ctx, &o.Options, port.MTU); p.r.Warning != "" {
				fmt.Fprintln(out, "warning:", p.r.Warning)
			}
			port = nil
		}
		if p.r.Reads == o.Count {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	p.drop()
	return p.r, nil
}

// begin writes the first line and returns the port in use.
func (p *pinger) begin() *inspect.Port {
	q, port := p.way.look()
	if q == nil {
		return nil
	}
	p.r.Path = q.Path
	by := fmt.Sprintf("port %s, %s, MTU %d", port.Name, port.Driver, port.MTU)
	if q.Path == inspect.PathHost {
		by = "within this urdmad, no wire"
	}
	fmt.Fprintf(p.out, "RDMA ping of %s from %s (%s): %d bytes, connected in %s\n", p.o.Peer,
		p.way.conn.LocalAddr().Addr(), by, p.o.Bytes,
		report.Duration(int64(p.way.took)))
	return port
}

// ping makes one RDMA Read, counts it and prints its time.
func (p *pinger) ping(ctx context.Context) {
	took, err := p.try(ctx)
	if err != nil && ctx.Err() != nil {
		return // interrupted: neither answered nor lost
	}
	p.r.Reads++
	if err == nil {
		p.r.Answered++
		p.r.Times = append(p.r.Times, int64(took))
		if n := len(p.r.Times); n > mostTimes {
			p.r.Times = slices.Delete(p.r.Times, 0, n-mostTimes)
		}
	}
	switch {
	case p.o.Quiet:
	case err == nil:
		fmt.Fprintf(p.out, "%d bytes from %s: read=%d time=%s\n", p.o.Bytes, p.o.Peer, p.r.Reads,
			report.Duration(int64(took)))
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(p.out, "%s: read=%d no answer within %v\n", p.o.Peer, p.r.Reads, p.o.Timeout)
	default:
		fmt.Fprintf(p.out, "%s: read=%d %v\n", p.o.Peer, p.r.Reads, err)
	}
}

func (p *pinger) try(ctx context.Context) (took time.Duration, err error) {
	if p.way != nil && p.way.conn.Err() != nil {
		p.drop()
	}
	if p.way == nil {
		if p.way, err = connect(ctx, &p.o.Options); err != nil {
			return 0, err
		}
	}
	return p.way.read(ctx, p.o.Bytes)
}

// drop closes the connection and adds up its counts.
func (p *pinger) drop() {
	if p.way == nil {
		return
	}
	q, _ := p.way.look()
	p.r.add(q)
	p.way.close()
	p.way = nil
}

// Print writes the summary of a ping.
func (r *PingResult) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %d reads, %d answered, %d lost (%s)", r.Peer, r.Reads, r.Answered, r.Lost(),
		report.Percent(float64(r.Lost()), float64(r.Reads)))
	if r.Path == inspect.PathWire {
		fmt.Fprintf(w, "; %d packets sent, %d of %d segments sent again", r.Sent, r.Resent, r.Segments)
	}
	fmt.Fprintln(w)
	if len(r.Times) == 0 {
		return
	}
	t := slices.Clone(r.Times)
	slices.Sort(t)
	fmt.Fprintf(w, "round trip: least %s, median %s, most %s\n", report.Duration(t[0]), report.Duration(t[len(t)/2]),
		report.Duration(int64(t[len(t)-1])))
}
