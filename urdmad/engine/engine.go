package engine

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"urdma/dpdk/port"
	"urdma/urdmad/clock"
	"urdma/urdmad/mem"
	"urdma/wire"
)

// Time is nanoseconds of a monotonic clock, passed in with every turn.
type Time = clock.Time

// Never is later than any time.
const Never = clock.Never

// Config of an engine. Zero durations take the defaults of package reliable.
type Config struct {
	Rand         rand.Source // keys, sequence numbers, cookies; seeded in tests
	Log          *slog.Logger
	DeathTimeout Time // silence after which a peer counts as dead
	AckDelay     Time
	Window       int    // segments in flight a connection, power of two
	YieldPost    uint32 // what clients are told in their doorbell page
	YieldPoll    uint32
	// Wake is called, from any goroutine, when work appears outside rings and
	// ports.
	Wake func()
}

// Handler is told what happens to connections; package cm implements it.
// Calls come on the worker's thread.
type Handler interface {
	// Packet is a TRP request, accept or reject that belongs to no established
	// connection. body follows the base header and is private memory.
	Packet(dev int, f *wire.Frame, t *wire.TRP, body []byte)
	// Established: the peer's first acknowledgement of our accept arrived.
	Established(c *Conn)
	// Closed: the connection is over, for the reason given.
	Closed(c *Conn, why CloseReason)
}

// Engine is one worker's data path.
type Engine struct {
	cfg     Config
	log     *slog.Logger
	rand    *rand.Rand
	now     Time
	core    uint32 // CPU the worker runs on
	handler Handler

	ports   []*netPort
	clients []*Client
	qps     map[uint32]*QP
	mrs     *mem.Table
	runq    runQueue
	blocked int // turns in a row that could send nothing of what there is
	timers  clock.Timers
	retry   []*EventSocket // event sockets with a backlog

	taps   []tapped
	sight  Sight  // being shown
	madeUp []byte // see scratch
	note   string // what became of the frame being received, for taps

	calls   mailbox[func()]  // Do
	settled mailbox[settled] // fallback jobs that ended

	past  QPStats // of queue pairs that were removed
	Stats Stats
}

// Stats counts what no connection or port counts. The worker writes; readers
// use Engine.Do.
type Stats struct {
	Turns, BusyTurns  uint64
	BadFrames         map[string]uint64 // by error text
	NoConnection      uint64            // datagrams to a port number nobody has
	StrayAddress      uint64            // right port number, wrong peer address or cookie
	BadAck            uint64
	ReceiverNotReady  uint64 // messages that waited for a receive
	RetainFailed      uint64
	TerminatesSent    map[wire.TermCode]uint64
	TerminatesGot     map[wire.TermCode]uint64
	SegmentsSent      uint64
	SegmentsPlaced    uint64
	FallbackJobs      uint64
	LocalMessages     uint64
	ClientFaults      uint64
	CompletionOverrun uint64
}

// New returns an engine without ports.
func New(cfg Config) *Engine {
	if cfg.Rand == nil {
		cfg.Rand = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Window == 0 {
		cfg.Window = 1024
	}
	if cfg.DeathTimeout == 0 {
		cfg.DeathTimeout = 4e9
	}
	if cfg.AckDelay == 0 {
		cfg.AckDelay = conversing
	}
	e := &Engine{cfg: cfg, log: cfg.Log, rand: rand.New(cfg.Rand), qps: map[uint32]*QP{}}
	e.mrs = mem.NewTable(cfg.Rand)
	e.Stats.BadFrames = map[string]uint64{}
	e.Stats.TerminatesSent = map[wire.TermCode]uint64{}
	e.Stats.TerminatesGot = map[wire.TermCode]uint64{}
	return e
}

// SetHandler names who manages connections; before the first turn.
func (e *Engine) SetHandler(h Handler) { e.handler = h }

// AddPort gives the engine a port as its next device number.
func (e *Engine) AddPort(p port.Port, ip Address) int {
	n := newNetPort(e, len(e.ports), p, ip)
	e.ports = append(e.ports, n)
	return n.dev
}

// Now is the time of the current turn.
func (e *Engine) Now() Time { return e.now }

// Memory is the engine's table of registered memory.
func (e *Engine) Memory() *mem.Table { return e.mrs }

// Do has fn run on the worker's thread and returns at once. The caller wakes
// the worker.
func (e *Engine) Do(fn func()) { e.calls.put(fn) }

// mailbox hands values from any goroutine to the worker.
type mailbox[T any] struct {
	full atomic.Bool
	mu   sync.Mutex
	q    []T
}

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.q = append(m.q, v)
	m.mu.Unlock()
	m.full.Store(true)
}

// take returns all values put so far; a load and no lock when there are none.
func (m *mailbox[T]) take() []T {
	if !m.full.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full.Store(false)
	q := m.q
	m.q = nil
	return q
}
