package cm

import (
	"log/slog"
	"syscall"

	"urdma/urdmad/clock"
	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

type state uint8

const (
	idle state = iota
	bound
	resolving // address
	resolved  // address
	routed
	listening
	connecting
	requested // a passive id whose CONNECT_REQUEST was delivered
	accepting // accepted, the peer's first packet has not come
	connected
	ended
)

// Channel is an rdma_cm event channel.
type Channel struct {
	Handle uint32
	Socket *engine.EventSocket
}

// Owner makes handles for ids that appear by themselves: the passive side of a
// connection request belongs to the client that listens.
type Owner interface {
	// Adopt gives a new id a handle of this client, or refuses it.
	Adopt(id *ID) (handle uint32, ok bool)
}

// ID is an rdma_cm id.
type ID struct {
	Handle  uint32
	Channel *Channel
	Owner   Owner
	PS      uint32 // enum rdma_port_space

	state  state
	dev    int // -1: any
	local  addr
	peer   addr
	mac    wire.MAC
	onHost bool // the peer is in this engine
	conn   *engine.Conn
	qp     *engine.QP
	timer  *clock.Timer
	tries  int

	backlog int
	pending int // children requested and neither accepted nor rejected
	parent  *ID // listener of a passive id
	peerID  *ID // the other end, for connections in this engine

	rnrRetry uint8
	offered  request // passive: what the peer asked for; active: what we ask for
	answer   wire.TRPConnect
	key      requestKey // in Manager.incoming, if asked
	asked    bool
	gone     bool
	created  engine.Time

	// Options of rdma_set_option(3).
	TOS       uint8
	ReuseAddr bool
}

// request is what a connection request says.
type request struct {
	isn      wire.PSN
	ird, ord uint16
	private  []byte
	ext      wire.TRPExtension
	hasExt   bool
}

type addr struct {
	ip   wire.IPv4
	port uint16
}

func (a addr) abi() abi.Addr { return abi.AddrFrom4(a.ip, a.port) }

// Device is what cm must know of a port.
type Device struct {
	IP wire.IPv4
}

// Manager holds every id of an urdmad.
type Manager struct {
	e         *engine.Engine
	log       *slog.Logger
	devices   []Device
	ports     map[uint16][]*ID       // bound to a port number
	incoming  map[requestKey]*ID     // passive ids by who asked
	refused   map[requestKey]refusal // answers to repeat
	lately    map[uint16]engine.Time // when a listener left a port number
	ephemeral uint16
	silent    bool // urdmad stops: see Silence
	maxReads  uint16
	giveUp    engine.Time
	Stats     Stats
}

// Stats counts what happened to connections.
type Stats struct {
	Requested, Accepted, Rejected, Refused, TimedOut, Established, Ended uint64
}

// refusal is a reject that may have been lost.
type refusal struct {
	mac     wire.MAC
	local   uint16
	private []byte
}

// requestKey recognises a request that comes again.
type requestKey struct {
	dev  int
	from addr
	isn  wire.PSN
}

// New returns a Manager and makes it the engine's handler. giveUp is how long a
// handshake is tried; maxReads limits IRD and ORD.
func New(e *engine.Engine, log *slog.Logger, devices []Device, giveUp engine.Time, maxReads uint16) *Manager {
	m := &Manager{e: e, log: log, devices: devices, ports: map[uint16][]*ID{}, incoming: map[requestKey]*ID{},
		lately: map[uint16]engine.Time{}, refused: map[requestKey]refusal{},
		ephemeral: firstEphemeral, maxReads: maxReads, giveUp: giveUp}
	e.SetHandler(m)
	return m
}

// Create returns a new id on a channel.
func (m *Manager) Create(owner Owner, ch *Channel, handle, ps uint32) *ID {
	id := &ID{Handle: handle, Channel: ch, Owner: owner, PS: ps, dev: -1, created: m.e.Now()}
	id.timer = clock.NewTimer(func() { m.tick(id) })
	return id
}

// Destroy forgets an id. A connection it has ends; a request it has not
// answered is rejected; requests that a listener has not answered too.
func (m *Manager) Destroy(id *ID) {
	if id.gone {
		return
	}
	id.gone = true
	switch id.state {
	case requested:
		m.refuse(id, nil)
	}
	if id.state == listening {
		m.listenerLeft(id.local.port)
	}
	m.e.SetTimer(id.timer, engine.Never)
	if id.conn != nil {
		id.conn.Disconnect()
	}
	m.unbind(id)
	m.forget(id)
	id.state = ended
}

// Migrate moves an id's further events to another channel.
func (m *Manager) Migrate(id *ID, ch *Channel) { id.Channel = ch }

// Bound returns where an id is bound; dev is -1 for any.
func (id *ID) Bound() (local abi.Addr, dev int) { return id.local.abi(), id.dev }

// Conn is the id's connection, or nil.
func (id *ID) Conn() *engine.Conn { return id.conn }

// event delivers an event about id. fill may add to it.
func (m *Manager) event(id *ID, kind uint32, status int32, fill func(*abi.CMEvent)) {
	if id.gone || id.Channel == nil || m.silent {
		return
	}
	ev := abi.CMEvent{Event: kind, Status: status, ID: id.Handle, Device: abi.NoDevice,
		Local: id.local.abi(), Peer: id.peer.abi()}
	if id.dev >= 0 {
		ev.Device = uint32(id.dev)
	}
	if fill != nil {
		fill(&ev)
	}
	m.e.SendEvent(id.Channel.Socket, abi.Bytes(&ev))
}

// Silence stops all events: urdmad is about to hang up on every client, one
// after the other, and the first to go must not look to the others like a peer
// that disconnected in good order.
func (m *Manager) Silence() { m.silent = true }

// soon runs fn later in this turn or in the next.
func (m *Manager) soon(fn func()) { m.e.SetTimer(clock.NewTimer(fn), m.e.Now()) }

func (m *Manager) tick(id *ID) {
	switch id.state {
	case resolving:
		m.resolveTimeout(id)
	case connecting:
		m.retryRequest(id)
	case accepting:
		m.retryAccept(id)
	}
}

func (m *Manager) forget(id *ID) {
	if id.asked {
		delete(m.incoming, id.key)
		id.asked = false
	}
}

// Len is how many entries the tables have: bound ids, requests not yet
// forgotten, and refusals that may have to be repeated.
func (m *Manager) Len() int { return len(m.ports) + len(m.incoming) + len(m.refused) }

const (
	einval       = syscall.EINVAL
	firstRetry   = engine.Time(50e6) // ns until a request or accept is repeated; doubles
	longestRetry = engine.Time(1e9)
)

func retryAfter(tries int) engine.Time { return min(firstRetry<<min(tries, 10), longestRetry) }
