package engine

import (
	"cmp"
	crypto "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"

	"urdma/dpdk/port"
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/mailbox"
	"urdma/urdmad/core/mpa"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rawpacket"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/reliable"
	"urdma/urdmad/core/roce"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/wire"
)

// Config configures an engine. Zeros mean the defaults of package reliable.
type Config struct {
	Rand         rand.Source // source of keys, sequence numbers and cookies; seeded in tests
	Log          *slog.Logger
	DeathTimeout clock.Time // silence after which a peer counts as dead
	AckDelay     clock.Time // how long acknowledgements and completions wait for an answer (package pingpong)
	Window       int        // largest number of segments in flight per connection
	YieldPost    uint32     // settings that clients read in their doorbell page
	YieldPoll    uint32
	YieldAlone   uint32                   // ns
	Mine         func(number uint32) bool // whether a queue pair number belongs to this worker; nil: there is only one
	Numbers      trp.Numbers              // port numbers of the workers; nil: there is only one
	// Wake is called, from any goroutine, when there is work that the poll loop does not see in
	// rings and ports.
	Wake func()
	// AddressLost, if set, is called on the worker's thread, once per device, when another host
	// uses the IPv6 address of the device's port. The port is then cut off.
	AddressLost func(dev int)
}

// Engine is one worker's data path: its protocol stacks and the clients that belong to it. The
// stacks may be used on the worker's thread only.
type Engine struct {
	Clock     clock.Clock
	QPs       *qp.Table
	TRP       *trp.Stack
	MPA       *mpa.Stack
	SameHost  *samehost.Stack
	Datagrams *datagram.Stack
	RoCE      *roce.Stack
	Raw       *rawpacket.Stack
	Streams   *rdmap.Stats // of all RDMAP streams
	Stats     Stats

	cfg     Config
	log     *slog.Logger
	ports   []*ifPort
	clients []*Client
	calls   mailbox.Box[func()] // from Do
	taken   []func()            // out of calls, and still to be made
	core    uint32              // CPU the worker runs on
	blocked int                 // consecutive turns in which nothing of the waiting work could be sent
	single  []*qp.QP            // buffer of sendBetween

	contained func(value any) bool // the method containPanic; a value made in each turn would be allocated
}

// ifPort is an interface with its connections.
type ifPort struct {
	*trp.Port
	datagrams *datagram.Port
	armed     bool // ArmRx was called
	overTCP   bool
	roce      *roce.Port // nil: the port speaks TRP

	socket *mpa.Watched // datagram socket of a port over TCP, once it has been watched while asleep; else nil
	recent bool         // something was received or sent since the port was last idle
}

// Client is one process, as the poll loop sees it: its queue pairs and its doorbells.
type Client struct {
	qp.Client

	bells  ring.ServerBells
	byBell [abi.NumDoorbells]*qp.QP
	nextDB int
	faulty bool
}

// Stats has the counters of the poll loop.
type Stats struct {
	Turns, BusyTurns uint64
	ClientFaults     uint64 `counter:"client_faults"`
	Panics           uint64 `counter:"panics"` // that ended a client instead of the process
}

// Counts has the counters of all stacks of the worker, without those of single connections.
type Counts struct {
	Engine    Stats
	QPs       qp.Stats
	Streams   rdmap.Stats
	SameHost  samehost.Stats
	TRP       trp.Stats
	MPA       mpa.Stats
	Datagrams datagram.Stats
	RoCE      roce.Stats
	Raw       rawpacket.Stats
}

// Counts returns a copy of the counters.
func (e *Engine) Counts() Counts {
	return Counts{e.Stats, e.QPs.Stats, *e.Streams, e.SameHost.Stats, e.TRP.Stats, e.MPA.Stats, e.Datagrams.Stats,
		e.RoCE.Stats, e.Raw.Counts()}
}

// New returns an engine without ports.
func New(cfg Config) *Engine {
	if cfg.Rand == nil {
		cfg.Rand = unpredictable()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.AckDelay == 0 {
		cfg.AckDelay = reliable.DefaultAckDelay
	}
	e := &Engine{cfg: cfg, log: cfg.Log, Streams: rdmap.NewStats()}
	e.contained = e.containPanic
	numbers := rand.New(cfg.Rand)
	e.QPs = qp.NewTable(&e.Clock, cfg.Log, cfg.Rand, numbers, cfg.Wake)
	e.QPs.SetShare(cfg.Mine)
	e.TRP = trp.NewStack(trp.Config{DeathTimeout: cfg.DeathTimeout, AckDelay: cfg.AckDelay, Window: cfg.Window,
		Numbers: cfg.Numbers},
		e.QPs, e.Streams, cfg.Log, numbers)
	e.MPA = mpa.NewStack(mpa.Config{DeathTimeout: cfg.DeathTimeout, AnswerDelay: cfg.AckDelay}, e.QPs, e.Streams, cfg.Log)
	e.SameHost = samehost.NewStack(e.QPs, e.Streams, cfg.Log, cfg.AckDelay)
	e.SameHost.SetDeathTimeout(cmp.Or(cfg.DeathTimeout, reliable.DefaultDeathTimeout))
	e.Datagrams = datagram.NewStack(e.QPs, trp.Datagrams{})
	e.RoCE = roce.NewStack(e.QPs, cfg.Log, numbers)
	e.Raw = rawpacket.NewStack(e.QPs, func(fn func()) {
		e.Do(fn)
		if cfg.Wake != nil {
			cfg.Wake()
		}
	})
	return e
}

// unpredictable returns a cryptographic source. Strangers see some of its numbers (sequence
// numbers, cookies) and must not be able to guess others (STags).
func unpredictable() rand.Source {
	var seed [32]byte
	_, _ = crypto.Read(seed[:]) // never fails (crypto/rand)
	return rand.NewChaCha8(seed)
}

// Handler manages the connections of every carrier.
type Handler interface {
	trp.Handler
	mpa.Handler
	roce.Handler
}

// SetHandler sets the manager of connections; it must be called before the first turn.
func (e *Engine) SetHandler(h Handler) {
	e.TRP.SetHandler(h)
	e.MPA.SetHandler(h)
	e.RoCE.SetHandler(h)
	e.SameHost.SetManager(h)
}

// AddPort adds a port and returns its device number, the next one.
func (e *Engine) AddPort(p port.Port, a netif.Address) int {
	n := netif.New(len(e.ports), p, a, &e.Clock)
	n.FindPaths(e.TRP.Random)
	for _, other := range e.ports {
		other.If.AddOwn(n.IP())
		n.AddOwn(other.If.IP())
	}
	datagrams := e.Datagrams.AddPort(n)
	e.Raw.AddPort(n)
	e.ports = append(e.ports, &ifPort{Port: e.TRP.AddPort(datagrams), datagrams: datagrams})
	if ended := n.Lost; e.cfg.AddressLost != nil {
		n.Lost = func(by wire.MAC) {
			ended(by)
			e.cfg.AddressLost(n.Dev)
		}
	}
	return n.Dev
}

// Renumber changes the address of device dev to another of the same family, or to the unspecified
// address. Connections from the old address end.
func (e *Engine) Renumber(dev int, a netip.Prefix) {
	p := e.ports[dev]
	old := p.If.IP()
	p.If.Renumber(a)
	if a.Addr() == old {
		return
	}
	for _, q := range e.ports {
		q.If.ForgetOwn(old)
		for _, other := range e.ports {
			q.If.AddOwn(other.If.IP())
		}
	}
	p.EndFrom(old)
	p.datagrams.Renumbered()
	if p.roce != nil {
		p.roce.EndFrom(old)
	}
}

// Interface returns the interface with device number dev.
func (e *Engine) Interface(dev int) *netif.Interface { return e.ports[dev].If }

// Interfaces returns all interfaces, in the order of their device numbers.
func (e *Engine) Interfaces() (all []*netif.Interface) {
	for _, p := range e.ports {
		all = append(all, p.If)
	}
	return all
}

// CarryOverTCP makes rdma_cm connections of device dev use TCP. allow lists the networks of
// permitted peers; an empty list permits all. scope is the index of the device's interface. With
// crc the device asks for MPA CRCs, whatever the peer asks for.
func (e *Engine) CarryOverTCP(dev int, allow []netip.Prefix, scope uint32, crc bool) {
	e.ports[dev].overTCP = true
	e.MPA.SetDevice(dev, mpa.Device{Allow: allow, Scope: scope, CRC: crc})
}

// OverTCP reports whether CarryOverTCP was called.
func (e *Engine) OverTCP(dev int) bool { return dev < len(e.ports) && e.ports[dev].overTCP }

// SpeakRoCE makes device dev speak RoCEv2 and nothing else, apart from the protocols every host
// needs; it must be called before the first Turn.
func (e *Engine) SpeakRoCE(dev int) { e.ports[dev].roce = e.RoCE.AddPort(e.ports[dev].datagrams) }

// SpeaksRoCE reports whether SpeakRoCE was called.
func (e *Engine) SpeaksRoCE(dev int) bool { return dev < len(e.ports) && e.ports[dev].roce != nil }

// PlaceImmediately makes device dev place RDMA Writes on arrival instead of in order.
func (e *Engine) PlaceImmediately(dev int) { e.ports[dev].Immediate = true }

// PlacesImmediately reports whether PlaceImmediately was called.
func (e *Engine) PlacesImmediately(dev int) bool { return e.ports[dev].Immediate }

// Announce announces our ports' addresses on their links (gratuitous ARP).
func (e *Engine) Announce() {
	for _, p := range e.ports {
		p.If.Announce()
	}
}

// Now returns the time of the current turn.
func (e *Engine) Now() clock.Time { return e.Clock.Now }

// Core returns the CPU that the worker runs on.
func (e *Engine) Core() int { return int(int32(e.core)) }

// Do queues fn to run on the worker's thread and returns at once. The caller must wake the
// worker.
func (e *Engine) Do(fn func()) { e.calls.Put(fn) }

// endFaulty fails a client's queue pairs and tells its owner once, who then removes it.
func (e *Engine) endFaulty(c *Client, why reason.Number, err error) {
	e.QPs.FailClient(&c.Client, why)
	if c.faulty {
		return
	}
	c.faulty = true
	e.log.Error("closing a client", "client", c.Name, "error", err)
	if c.Fault != nil {
		c.Fault(err)
	}
}

// containPanic ends the client that is being served, if the panic concerns that client alone, and reports whether it
// does. fault.Guard calls it while the stack of the panic is still there. A panic in here ends the process.
func (e *Engine) containPanic(value any) bool {
	q := e.QPs.Serving
	if q == nil || !inClientState() {
		return false
	}
	for _, c := range e.clients {
		if &c.Client == q.Client {
			e.QPs.Serving = nil
			e.Stats.Panics++
			e.log.Error("a bug of urdmad: please report it", "client", c.Name, "qpn", q.QPN, "panic", value,
				"stack", string(debug.Stack()))
			q.Fail(qp.EventFatal, reason.Bug)
			e.endFaulty(c, reason.Bug, errBug)
			return true
		}
	}
	return false
}

var errBug = errors.New("engine: urdmad met a bug of its own while it served the client")
