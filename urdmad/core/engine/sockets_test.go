package engine_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
	"urdma/dpdk/udp"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// BenchmarkSockets measures Writes of 64 KiB over UDP sockets of the kernel, both
// engines on one thread: the processor time that either takes for a Write, by the
// tenth part of 100 Writes each that took least, as most of what a busy machine adds is
// not in that. It needs a network namespace whose lo has both hosts' addresses.
func BenchmarkSockets(b *testing.B) {
	for _, mtu := range []int{1500, 9000} {
		b.Run(fmt.Sprint("mtu", mtu), func(b *testing.B) { benchmarkSockets(b, mtu) })
	}
}

func benchmarkSockets(b *testing.B, mtu int) {
	const size, depth, many = 64 << 10, 100, 100
	w := enginetest.New(b, enginetest.Options{Seed: 1,
		Open: func(a netip.Addr) port.Port { return openSocket(b, a, mtu) }})
	c := enginetest.DefaultCap
	c.MaxSendWR = 128
	x, y := w.Pair(false, &c)
	src, dst := x.Client.Register(size, enginetest.ReadWrite), y.Client.Register(size, enginetest.ReadWrite)
	wr, sge := enginetest.Write(1, dst, 0), []abi.SGE{src.SGE(0, size)}
	from, to := turner{e: w.A.Engine}, turner{e: w.B.Engine}
	cqes := make([]abi.CQE, 16)
	started, base := time.Now(), w.Now()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	writes := func(n int) {
		for posted, done := 0, 0; done < n; done += x.Send.PollInto(cqes) {
			for ; posted < n && posted-done < depth; posted++ {
				x.Ring.SQ.Write(&wr, sge)
				x.Ring.SQ.Publish()
				x.Bell()
			}
			now := base + clock.Time(time.Since(started))
			from.turn(now)
			to.turn(now)
		}
	}
	writes(200)
	var sender, receiver []time.Duration
	for b.Loop() {
		from.took, to.took = 0, 0
		writes(many)
		sender, receiver = append(sender, from.took), append(receiver, to.took)
	}
	b.ReportMetric(0, "ns/op") // what the machine does beside it
	b.ReportMetric(leastTenth(sender)/many, "µs-sender/write")
	b.ReportMetric(leastTenth(receiver)/many, "µs-receiver/write")
}

func openSocket(b *testing.B, a netip.Addr, mtu int) port.Port {
	p, err := udp.Open(udp.Options{Address: netip.AddrPortFrom(a, enginetest.SocketPort), MTU: mtu})
	if err != nil {
		b.Skip("as root: ip netns add bench; ip -n bench link set lo up; ip -n bench address add 10.0.0.1/32 dev lo; "+
			"ip -n bench address add 10.0.0.2/32 dev lo; ip netns exec bench …:", err)
	}
	b.Cleanup(func() { _ = p.Close() })
	return p
}

// turner turns an engine and adds up the processor time of turns with work.
type turner struct {
	e    *engine.Engine
	took time.Duration
}

func (u *turner) turn(now clock.Time) {
	before := threadTime()
	if worked, _ := u.e.Turn(now); worked {
		u.took += threadTime() - before
	}
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// leastTenth is the tenth percentile, in microseconds.
func leastTenth(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/10].Nanoseconds()) / 1e3
}
