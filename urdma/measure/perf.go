package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"urdma/inspect"
	"urdma/urdma/report"
	"urdma/verbs"
	"urdma/verbs/probe"
)

// PerfOptions say what to measure.
type PerfOptions struct {
	Options
	Time  time.Duration // of each measurement
	Sizes []int         // bytes of the messages; none: defaultSizes
	// Progress gets a line that is written over and over; nil: nothing.
	Progress io.Writer
}

var defaultSizes = []int{64, 1024, 4096, 65536, 1 << 20}

// MaxPerf is the largest message, in bytes.
func MaxPerf() int { return probe.Perf.Bytes() }

// PerfRow is one measurement. One without times had many messages under way;
// one with times had one after the other.
type PerfRow struct {
	Test     string  `json:"test"`  // "write" or "read", with "latency" behind it
	Bytes    int     `json:"bytes"` // of a message
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	// Of a message until it is known to be there, or here.
	Least  int64 `json:"least_ns,omitempty"`
	Median int64 `json:"median_ns,omitempty"`
	P99    int64 `json:"p99_ns,omitempty"`
	Most   int64 `json:"most_ns,omitempty"`
	Packets
}

// Rate is messages a second.
func (r *PerfRow) Rate() float64 { return float64(r.Messages) / r.Seconds }

// Bandwidth is bits of messages a second.
func (r *PerfRow) Bandwidth() float64 { return 8 * float64(r.Bytes) * r.Rate() }

// PerfResult is what was measured, in the order in which it was.
type PerfResult struct {
	Peer   string    `json:"peer"`
	Local  string    `json:"local"`
	Path   string    `json:"path"` // as PingResult.Path
	Driver string    `json:"driver"`
	MTU    int       `json:"mtu"`
	Rows   []PerfRow `json:"measurements"`
}

// operation is what is measured.
type operation struct {
	name    string
	op      verbs.Opcode
	latency bool
}

var (
	operations = []operation{{"write", verbs.OpWrite, false}, {"read", verbs.OpRead, false}}
	latencies  = []operation{{"write latency", verbs.OpWrite, true}, {"read latency", verbs.OpRead, true}}
)

// latencyBytes is how long the messages of a latency are.
const latencyBytes = 8

// perf is a run.
type perf struct {
	o    *PerfOptions
	w    *way
	r    *PerfResult
	done int // measurements
	all  int
	show time.Time // when progress is due
}

// Perf measures RDMA Writes and Reads. Before it, bytes are written, read back
// and compared. If ctx ends it returns what it has.
func Perf(ctx context.Context, o *PerfOptions) (*PerfResult, error) {
	if len(o.Sizes) == 0 {
		o.Sizes = defaultSizes
	}
	w, err := connect(ctx, &o.Options, probe.Perf)
	if err != nil {
		return nil, err
	}
	defer w.close()
	p := &perf{o: o, w: w, r: &PerfResult{Peer: o.Peer, Local: w.conn.LocalAddr().Addr().String(), Rows: []PerfRow{}}}
	mtu := 1500
	if q, port := w.look(); q != nil {
		p.r.Path, p.r.Driver, p.r.MTU, mtu = q.Path, port.Driver, port.MTU, port.MTU
	}
	p.all = len(latencies) + len(operations)*len(o.Sizes)
	err = p.run(ctx)
	if o.Progress != nil {
		fmt.Fprint(o.Progress, "\r\x1b[K")
	}
	if err == nil || ctx.Err() != nil {
		return p.r, nil
	}
	if why := checkMTU(ctx, &o.Options, mtu); why != "" && p.r.Path == inspect.PathWire {
		err = errors.New(why)
	}
	return p.r, err
}

func (p *perf) run(ctx context.Context) error {
	if err := p.compare(ctx); err != nil {
		return err
	}
	for _, op := range latencies {
		if err := p.measure(ctx, op, latencyBytes); err != nil {
			return err
		}
	}
	for _, op := range operations {
		for _, n := range p.o.Sizes {
			if err := p.measure(ctx, op, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare writes bytes, reads them back and compares.
func (p *perf) compare(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	memory := p.w.memory.Bytes()
	want := make([]byte, len(memory)/2)
	probe.Fill(want, ^p.w.seed)
	copy(memory, want)
	if err := p.w.conn.Write(limited, p.w.lent, p.w.memory.SGE(0, len(want))); err != nil {
		return fmt.Errorf("writing %d bytes: %w", len(want), err)
	}
	if err := p.w.conn.Read(limited, p.w.lent, p.w.memory.SGE(len(want), len(want))); err != nil {
		return fmt.Errorf("reading %d bytes: %w", len(want), err)
	}
	if !bytes.Equal(want, memory[len(want):]) {
		return errWrongData
	}
	return nil
}

// measure adds a row.
func (p *perf) measure(ctx context.Context, op operation, n int) error {
	row := PerfRow{Test: op.name, Bytes: n}
	var before, after Packets
	q, _ := p.w.look()
	before.add(q)
	run := p.flow
	if op.latency {
		run = p.oneByOne
	}
	start := time.Now()
	err := run(ctx, op, &row)
	row.Seconds = time.Since(start).Seconds()
	if err != nil {
		return fmt.Errorf("%s of %d bytes: %w", op.name, n, err)
	}
	q, _ = p.w.look()
	after.add(q)
	row.Packets = after.since(before)
	p.r.Rows = append(p.r.Rows, row)
	p.done++
	return nil
}

// oneByOne takes the time of each message.
func (p *perf) oneByOne(ctx context.Context, op operation, row *PerfRow) error {
	var times []int64
	sge := p.w.memory.SGE(0, row.Bytes)
	for end := time.Now().Add(p.o.Time); time.Now().Before(end); {
		limited, cancel := context.WithTimeout(ctx, p.o.Timeout)
		start := time.Now()
		var err error
		if op.op == verbs.OpRead {
			err = p.w.conn.Read(limited, p.w.lent, sge)
		} else {
			err = p.w.conn.Write(limited, p.w.lent, sge)
		}
		times = append(times, int64(time.Since(start)))
		cancel()
		if err != nil {
			return err
		}
		row.Messages++
		p.progress(row, start)
	}
	slices.Sort(times)
	n := len(times)
	row.Least, row.Median, row.P99, row.Most = times[0], times[n/2], times[n*99/100], times[n-1]
	return nil
}

// flow keeps messages under way until the time is up, and waits for the last.
func (p *perf) flow(ctx context.Context, op operation, row *PerfRow) error {
	f := flow{p: p, wr: verbs.SendWR{Op: op.op, Flags: verbs.Signaled}, n: row.Bytes, places: len(p.w.memory.Bytes()) / row.Bytes}
	start := time.Now()
	end := start.Add(p.o.Time)
	for now := start; now.Before(end); now = time.Now() {
		if err := f.fill(); err != nil {
			return err
		}
		if err := f.reap(ctx, row); err != nil {
			return err
		}
		p.progress(row, now)
	}
	for f.out > 0 {
		if err := f.reap(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// flow is messages under way. They go through all of the memory, so that no
// cache holds them longer than it would a program's.
type flow struct {
	p                    *perf
	wr                   verbs.SendWR
	n, places, next, out int
	got                  [sendDepth]verbs.Completion
}

// fill posts what there is room for.
func (f *flow) fill() error {
	for ; f.out < sendDepth; f.out++ {
		at := f.next % f.places * f.n
		f.next++
		f.wr.SGE, f.wr.Remote = append(f.wr.SGE[:0], f.p.w.memory.SGE(at, f.n)), f.p.w.at(at)
		if err := f.p.w.conn.PostSend(&f.wr); err != nil {
			return err
		}
	}
	return nil
}

// reap waits for messages to arrive.
func (f *flow) reap(ctx context.Context, row *PerfRow) error {
	limited, cancel := context.WithTimeout(ctx, f.p.o.Timeout+f.p.o.Time)
	defer cancel()
	n, err := f.p.w.conn.SendCQ().Wait(limited, f.got[:])
	for i := range f.got[:n] {
		if err := f.got[i].Err(); err != nil {
			return err
		}
	}
	f.out -= n
	row.Messages += n
	return err
}

// progress writes over the line, some times a second.
func (p *perf) progress(row *PerfRow, now time.Time) {
	if p.o.Progress == nil || now.Before(p.show) {
		return
	}
	p.show = now.Add(100 * time.Millisecond)
	fmt.Fprintf(p.o.Progress, "\r\x1b[K%s: %s of %s, %s messages (%d of %d)", p.o.Peer, row.Test, report.Bytes(uint64(row.Bytes)),
		report.Count(float64(row.Messages)), p.done+1, p.all)
}
