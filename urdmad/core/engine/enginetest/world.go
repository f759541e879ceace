package enginetest

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/loopback"
	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/steer"
)

// Options of a World. The zero value is a fast, faultless network.
type Options struct {
	Seed           uint64
	MTU            int         // 1500
	Path           linked.Path // of both directions
	Window         int         // segments
	DeathTimeout   time.Duration
	ConnectTimeout time.Duration // of handshakes
	MaxReads       uint16        // 16
	RNRRetry       uint8         // rnr_retry_count of both sides
	NearWrap       bool          // initial PSNs are often just below 2^32
	Checksum       bool          // the ports compute checksums
	Immediate      bool          // place Writes on arrival
	TxRing         int           // capacity of a port, in frames
	ReceiveWindow  int           // of the ports (port.Info)
	Pipe           bool          // Pipes instead of the network, for benchmarks
	Datagrams      bool          // the same, with datagram pipes
	BlockedPages   bool          // do not wait for fallback jobs, because some never end
	Gateway        netip.Addr    // of both hosts; zero: none
	IPv6           bool          // addresses
	Loopback       netip.Addr    // address for pairs within a host; zero: the host's address
	NoCapture      bool          // no capture of the frames
	// Datagrams, and rdma_cm connections over the kernel's TCP, which must have both addresses
	TCP     bool
	CRC     bool         // with TCP: CRCs, whatever the peer asks for
	RoCE    bool         // the ports speak RoCEv2
	Panics  uint64       // panics that the hosts contain, all together; any other number fails the test
	Workers bool         // the hosts are two workers of one urdmad, at A's address, without a wire
	Log     slog.Handler // of both hosts; nil: discarded
	// Open makes the port of the host at an address, instead of the network's port.
	Open func(netip.Addr) port.Port
}

// turnTime is how long a turn of the poll loops takes on the virtual clock.
const turnTime = 500 // ns

// patience is the number of consecutive idle turns that Until allows, because a workload may
// pause.
const patience = 200

// lulls is how often the kernel gets time to deliver what TCP carries: 20 µs, of which
// time.Sleep makes a millisecond where nothing else runs.
const lulls = 5

var lull = unix.Timespec{Nsec: 20_000}

// World is two hosts and the network between them.
type World struct {
	T    testing.TB
	Net  *linked.Network
	Rand *rand.Rand // for workloads
	A, B *Host
	// PipeA and PipeB are the ports with Options.Datagrams.
	PipeA, PipeB *Pipe
	// Intrude, if set, is called before each turn, for an attacker.
	Intrude func()

	opt       Options
	numbers   *steer.Numbers // of workers
	jobsEnded atomic.Int64   // fallback jobs that ended
}

// New makes a world. The seed is printed if the test fails; seed 0 means a random seed.
func New(t testing.TB, o Options) *World {
	t.Helper()
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %#x", o.Seed)
		}
	})
	if o.MaxReads == 0 {
		o.MaxReads = 16
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 4 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.DiscardHandler
	}
	old := debug.SetPanicOnFault(true) // as a worker's thread has it
	t.Cleanup(func() { debug.SetPanicOnFault(old) })
	w := &World{T: t, Net: linked.New(o.Seed), Rand: rand.New(rand.NewPCG(o.Seed, 2)), opt: o}
	if o.Workers {
		w.numbers = steer.NewNumbers(2)
	}
	path := o.Path
	misuse := func(what string) { t.Errorf("port misuse: %s", what) }
	a, b := w.Net.Pair(linked.Options{Name: "a", MTU: o.MTU, Checksum: o.Checksum, Misuse: misuse, TxRing: o.TxRing,
		ReceiveWindow: o.ReceiveWindow},
		linked.Options{Name: "b", MTU: o.MTU, Checksum: o.Checksum, Misuse: misuse, TxRing: o.TxRing,
			ReceiveWindow: o.ReceiveWindow}, path, path)
	w.A, w.B = newHost(w, "a", a, 1), newHost(w, "b", b, 2)
	pa, pb := port.Port(a), port.Port(b)
	if o.Pipe {
		pa, pb = NewPipes(o.MTU)
	}
	if o.Datagrams || o.TCP {
		w.PipeA, w.PipeB = NewDatagramPipes(o.MTU, w.A.Addr, w.B.Addr)
		pa, pb = w.PipeA, w.PipeB
	}
	if o.Open != nil {
		pa, pb = o.Open(w.A.Addr), o.Open(w.B.Addr)
	}
	if o.Workers {
		hub := steer.NewHub(2, w.numbers, func(int) {})
		shared := hub.Add(loopback.Open("a", [6]byte{}, cmp.Or(o.MTU, 1500), w.A.Addr), w.A.Addr, false)
		pa, pb = shared.For(0), shared.For(1)
	}
	t.Cleanup(func() {
		if n := w.A.Engine.Stats.Panics + w.B.Engine.Stats.Panics; n != o.Panics {
			t.Errorf("%d panics, expected %d; Options.Log has the stacks", n, o.Panics)
		}
	})
	w.A.addPort(pa)
	w.B.addPort(pb)
	if _, measures := t.(*testing.B); !measures && !o.NoCapture {
		newCapture(t, w.A, o.RoCE)
		newCapture(t, w.B, o.RoCE)
	}
	return w
}

// Turn is Step for benchmarks: one turn of each host, half a microsecond.
func (w *World) Turn() {
	now := w.Now()
	w.A.Engine.Turn(now)
	w.B.Engine.Turn(now)
	w.Net.Advance(int64(now) + turnTime)
}

// Now is the virtual time.
func (w *World) Now() clock.Time { return clock.Time(w.Net.Now()) }

// Step takes one turn of each host. If no host has work, the clock moves on to the next event;
// Step returns false if there is none.
func (w *World) Step() bool { return w.step(clock.Never) }

// step moves the clock no further than to end.
func (w *World) step(end clock.Time) bool {
	if w.Intrude != nil {
		w.Intrude()
	}
	now := w.Now()
	busy, next := w.turn(now)
	for n := 0; w.opt.TCP && !busy && n < lulls; n++ { // the kernel may be slower than the virtual clock
		_ = unix.Nanosleep(&lull, nil)
		busy, next = w.turn(now)
	}
	if w.waitForHelpers() {
		return true
	}
	if at, ok := w.Net.Next(); ok {
		next = min(next, clock.Time(at))
	}
	if busy {
		w.Net.Advance(int64(now) + turnTime)
		return true
	}
	if next == clock.Never {
		return false
	}
	w.Net.Advance(int64(max(min(next, end), now+turnTime)))
	return true
}

// turn is one turn of each host.
func (w *World) turn(now clock.Time) (busy bool, next clock.Time) {
	next = clock.Never
	for _, h := range [2]*Host{w.A, w.B} {
		if h.stopped {
			continue
		}
		b, deadline := h.Engine.Turn(now)
		busy, next = busy || b, min(next, deadline)
	}
	return busy, next
}

// waitForHelpers waits, in real time, until package mem's goroutines have finished their jobs. It
// returns true if there were any.
func (w *World) waitForHelpers() bool {
	want := w.A.Engine.QPs.Submitted() + w.B.Engine.QPs.Submitted()
	seen := w.A.jobsSeen + w.B.jobsSeen
	if want == seen || w.opt.BlockedPages {
		return false
	}
	for give := time.Now().Add(time.Minute); w.jobsEnded.Load() < want; time.Sleep(10 * time.Microsecond) {
		if time.Now().After(give) {
			w.T.Fatalf("fallback jobs: %d of %d ended", w.jobsEnded.Load(), want)
		}
	}
	w.A.jobsSeen, w.B.jobsSeen = w.A.Engine.QPs.Submitted(), w.B.Engine.QPs.Submitted()
	return true
}

// Until takes turns until done returns true, for at most limit of virtual time.
func (w *World) Until(what string, limit time.Duration, done func() bool) {
	w.T.Helper()
	end := w.Now() + clock.Time(limit)
	for idle := 0; !done(); {
		if w.Now() > end {
			w.T.Fatalf("%s: not within %v of virtual time", what, limit)
		}
		if w.Step() {
			idle = 0
		} else if idle++; idle > patience {
			w.T.Fatalf("%s: nothing will ever happen again (at %v)", what, time.Duration(w.Now()))
		}
	}
}

// Pass lets an amount of virtual time pass.
func (w *World) Pass(d time.Duration) {
	end := w.Now() + clock.Time(d)
	for w.Now() < end {
		if !w.step(end) {
			w.Net.Advance(int64(end))
		}
	}
}

// SetPath changes the path of both directions of the network.
func (w *World) SetPath(p linked.Path) {
	w.A.Port.SetPath(p)
	w.B.Port.SetPath(p)
}

// CheckQuiet checks that ended connections left nothing behind: their port numbers are free and
// no packet is kept.
func (w *World) CheckQuiet() {
	w.T.Helper()
	for _, h := range []*Host{w.A, w.B} {
		for port := range 1 << 16 {
			if h.Engine.TRP.Port(0).Conn(uint16(port)) != nil {
				w.T.Errorf("host %s: port number %d is still in use", h.Name, port)
			}
		}
		if n := h.Port.Outstanding(); n > 32 {
			w.T.Errorf("host %s: %d packets are not given back", h.Name, n)
		}
		if n := h.Engine.Interface(0).Kept; n > 0 {
			w.T.Errorf("host %s: %d packets are still kept", h.Name, n)
		}
	}
}
