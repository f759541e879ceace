package cm

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/places"
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

// ID is an rdma_cm id.
type ID struct {
	Handle  uint32 // the owner's name for it
	Channel Channel
	Owner   Owner
	nature

	state state
	binding
	peer     netip.AddrPort
	resolves int // how often its peer was asked for
	timer    *clock.Timer
	repetition
	destroyed bool
	options   options
	left      bool // the program asked for the connection's end
	over      bool // DISCONNECTED was delivered

	queue  queue // a listener's
	parent *ID   // a passive id's listener
	peerID *ID   // the other end, on the same host

	conn    Conn
	terms   Start           // what conn starts with, as far as it is settled
	offered request         // active: what we ask for; passive: what the peer does
	answer  wire.TRPConnect // passive
	proof   proof           // passive
	key     requestKey      // passive: in Manager.incoming while it lives
}

// QueuePair is what the id connects, nil before the program has named it.
func (id *ID) QueuePair() QueuePair { return id.terms.QP }

// RNRRetry is how often a peer is to try for a receive of the id's queue pair, as its
// program has said.
func (id *ID) RNRRetry() uint8 { return id.terms.RNRRetry }

// binding is what an id is bound to.
type binding struct {
	dev     int // -1: any
	local   netip.AddrPort
	boundAt clock.Time
	doors   bool // see doors.go
}

// repetition is that of the handshake's last message.
type repetition struct {
	tries int
	begun clock.Time // when its first request, or accept, was sent
	alive clock.Time // active: when the peer last said that its program is still to answer
}

// nature is of what kind an id is.
type nature struct {
	// Datagrams: it is of a port space whose queue pairs are of type UD (service.go).
	Datagrams bool
	sameHost  bool // the peer is an id of this urdmad
}

// request is what a connection request says.
type request struct {
	isn      wire.PSN
	ird, ord uint16
	private  []byte
	ext      wire.TRPExtension
	token    uint32 // active: what the listener wants to hear again, 0 for nothing
}

// queue is what waits at a listener.
type queue struct {
	backlog  int
	pending  int // children that were neither accepted nor rejected
	unproved int // children whose peer has not proved its address, see ID.countUnproved
}

// requestKey recognises another copy of a request.
type requestKey struct {
	dev  int
	from netip.AddrPort
	isn  wire.PSN
}

// Config of a Manager. Addresses, here and in all calls, are not IPv4-mapped. Those
// that programs give may have a zone; none that the manager gives has one.
type Config struct {
	Network  Network
	Log      *slog.Logger
	Addrs    []netip.Addr // ours, by device number
	Scopes   []uint32     // see scope.go; by device number, those left out are 0
	Timeout  clock.Time   // how long a handshake is tried
	MaxDepth uint16       // limit of IRD and ORD
	Secret   [16]byte     // random; what tokens are made of
	// Expected, if not nil, is asked when a request comes to a port number where
	// nobody listens: whether somebody is about to. The peer then asks again.
	Expected func(port uint16) bool
	// Shared is nil where no other worker has port numbers.
	Shared Shared
}

// Manager holds every id of an urdmad.
type Manager struct {
	net      Network
	log      *slog.Logger
	addrs    []netip.Addr
	links    links
	numbers  portNumbers
	incoming map[requestKey]*ID      // passive ids by the request that made them
	refused  map[requestKey]*refusal // rejects to repeat
	leaving  map[*ID]struct{}        // destroyed listeners, see leaveDoors
	waiting  *places.Places          // of requests, see arrivedRequest
	silent   bool                    // see Silence
	maxDepth uint16
	timeout  clock.Time
	tokens   tokens
	services services
	Stats    Stats
}

// Stats counts what happened to connections.
type Stats struct {
	Requested   uint64 `counter:"requested"`
	Accepted    uint64 `counter:"accepted"`
	Rejected    uint64 `counter:"rejected"`
	Refused     uint64 `counter:"refused"`
	Retried     uint64 `counter:"retried"`
	TimedOut    uint64 `counter:"timed_out"`
	Established uint64 `counter:"established"`
	Ended       uint64 `counter:"ended"`
}

// New returns a Manager without ids.
func New(c Config) *Manager {
	m := &Manager{net: c.Network, log: c.Log, addrs: c.Addrs, links: links{c.Addrs, c.Scopes}, timeout: c.Timeout, maxDepth: c.MaxDepth,
		numbers: newPortNumbers(&c), incoming: map[requestKey]*ID{}, refused: map[requestKey]*refusal{}, leaving: map[*ID]struct{}{}, waiting: places.New(maxWaiting), tokens: tokens{c.Secret}}
	m.services = services{m: m, secret: c.Secret, replies: map[requestKey]*Packet{}}
	return m
}

// SetTimeout changes how long handshakes are tried, those under way included.
func (m *Manager) SetTimeout(t clock.Time) { m.timeout = t }

// Create returns a new id on a channel.
func (m *Manager) Create(owner Owner, ch Channel) *ID {
	id := &ID{Channel: ch, Owner: owner, binding: binding{dev: -1}}
	id.timer = clock.NewTimer(func() { m.tick(id) })
	return id
}

// Destroy forgets an id. A connection it has ends; a request it has not
// answered is rejected.
func (m *Manager) Destroy(id *ID) {
	if id.destroyed {
		return
	}
	id.destroyed = true
	switch id.state {
	case requested:
		m.reject(id, nil)
	case listening:
		m.numbers.reserve(id.local.Port())
	}
	m.net.Set(id.timer, clock.Never)
	if id.state == listening {
		m.leaveDoors(id)
	} else {
		m.closeDoors(id)
	}
	if id.conn != nil {
		id.conn.Disconnect()
	}
	m.numbers.remove(id)
	id.uncountUnproved()
	m.requestOver(id)
	id.state = ended
}

// Migrate moves an id's further events to another channel.
func (m *Manager) Migrate(id *ID, ch Channel) { id.Channel = ch }

// tick is an id's timer.
func (m *Manager) tick(id *ID) {
	switch id.state {
	case resolving:
		m.addrError(id, syscall.ETIMEDOUT)
	case connecting:
		if id.Datagrams {
			m.services.again(id)
			return
		}
		m.retryRequest(id)
	case accepting:
		m.retryAccept(id)
	case ended:
		m.closeDoors(id)
		m.deliver(id, Event{Kind: EventTimewaitExit})
	}
}

// after runs fn once a time has passed.
func (m *Manager) after(d clock.Time, fn func()) { m.net.Set(clock.NewTimer(fn), m.net.Now()+d) }

// Len is how many entries the tables have: bound ids, requests and rejects not
// yet forgotten, and port numbers kept for a listener.
func (m *Manager) Len() int {
	return len(m.numbers.ids) + len(m.incoming) + len(m.refused) + len(m.services.replies) +
		len(m.numbers.reserved) + len(m.leaving)
}

const einval = syscall.EINVAL

// in refuses what can't be done in the id's state.
func (id *ID) in(states ...state) error {
	if slices.Contains(states, id.state) {
		return nil
	}
	var names []string
	for _, s := range states {
		names = append(names, StateNames[s])
	}
	return fmt.Errorf("cm: the id is %s, expected %s: %w", StateNames[id.state], strings.Join(names, " or "), einval)
}

// Pauses before a request or accept is repeated.
const (
	firstRetry = 50 * clock.Millisecond // doubles each time
	maxRetry   = 1 * clock.Second
)

// retryAfter is the pause after so many repetitions.
func retryAfter(tries int) clock.Time { return min(firstRetry<<min(tries, 10), maxRetry) }

// timeSpent is how long so many repetitions have taken together.
func timeSpent(tries int) (t clock.Time) {
	for i := range tries {
		t += retryAfter(i)
	}
	return t
}

// mostPatience is how long a peer's program may take to answer: its host holds an id
// and a port number of ours by saying that the request has come.
const mostPatience = 3600 * clock.Second

// retry sets an id's timer for the next repetition; false if its time is up. A
// peer's program may take its time, as long as its host answers.
func (m *Manager) retry(id *ID) bool {
	id.tries++
	now := m.net.Now()
	if now-id.alive >= m.timeout && timeSpent(id.tries) >= m.timeout || now-id.begun >= max(m.timeout, mostPatience) {
		m.Stats.TimedOut++
		return false
	}
	m.net.Set(id.timer, now+retryAfter(id.tries))
	return true
}
