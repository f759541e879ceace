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
)

type state uint8

const (
	idle state = iota
	bound
	resolving // ResolveAddr is in progress
	resolved  // ResolveAddr succeeded
	routed
	listening
	connecting
	requested // a passive id whose CONNECT_REQUEST was delivered
	accepting // accepted, the peer's first packet has not arrived
	connected
	ended
)

// ID is an rdma_cm id.
type ID struct {
	Handle  uint32 // the owner's number for it
	Channel Channel
	Owner   Owner
	nature

	state state
	binding
	peer     netip.AddrPort
	resolves int // number of resolutions
	timer    *clock.Timer
	repetition
	destroyed bool
	options   options
	left      bool // the program has ended the connection
	over      bool // DISCONNECTED was delivered

	queue  queue // of a listener
	parent *ID   // the listener of a passive id
	peerID *ID   // the other end, on the same host

	conn    Conn
	terms   Start      // the parameters for Conn.Start, as far as they are known
	offered request    // active: our request; passive: the peer's
	reply   []byte     // passive: private data of our reply
	proof   proof      // passive
	key     requestKey // passive: key in Manager.incoming while the id lives
}

// QueuePair returns the queue pair of the id, nil before the program has set it.
func (id *ID) QueuePair() QueuePair { return id.terms.QP }

// binding is the address of an id.
type binding struct {
	dev     int // -1: any
	local   netip.AddrPort
	boundAt clock.Time
	sockets bool // it has listening sockets (sockets.go)
}

// repetition is the state of repeating the handshake's last message.
type repetition struct {
	tries int
	begun clock.Time // when the first request or accept was sent
	alive clock.Time // active: when the peer last said that its program has not answered yet
}

// nature is the kind of an id.
type nature struct {
	// Datagrams: its port space is for queue pairs of type UD (service.go).
	Datagrams bool
	sameHost  bool // the peer is an id of this urdmad
}

// request is the content of a connection request.
type request struct {
	number   uint32
	ird, ord uint16
	private  []byte
	qpn      uint32 // of the requester
	token    uint32 // active: the token that the listener asked us to return, 0 for none
}

// queue counts the requests that wait at a listener.
type queue struct {
	backlog  int
	pending  int // children that were neither accepted nor rejected
	unproved int // children whose peer has not proved its address, see ID.countUnproved
}

// requestKey identifies a request, so that its copies are recognised.
type requestKey struct {
	dev    int
	from   netip.AddrPort
	number uint32
}

// Config configures a Manager. Addresses, here and in all calls, are not IPv4-mapped. Addresses from
// programs may have a zone; addresses from the manager have none.
type Config struct {
	Network  Network
	Log      *slog.Logger
	Addrs    []netip.Addr // our addresses, by device number
	Scopes   []uint32     // by device number, see scope.go; missing entries are 0
	Timeout  clock.Time   // how long a handshake is tried
	MaxDepth uint16       // limit of IRD and ORD
	Secret   [16]byte     // random key for tokens
	// Expected, if not nil, reports whether a listener is about to come to a port number without one that
	// gets a request. Then the request is not refused, and the peer repeats it.
	Expected func(port uint16) bool
	// Shared is nil if no other worker uses port numbers.
	Shared Shared
}

// Manager has all ids of a urdmad.
type Manager struct {
	net      Network
	log      *slog.Logger
	addrs    []netip.Addr
	links    links
	numbers  portNumbers
	incoming map[requestKey]*ID      // passive ids by their request
	refused  map[requestKey]*refusal // rejects to repeat
	leaving  map[*ID]struct{}        // destroyed listeners, see closeSocketsLater
	waiting  *places.Places          // for waiting requests, see arrivedRequest
	silent   bool                    // Silence was called
	maxDepth uint16
	timeout  clock.Time
	tokens   tokens
	services services
	Stats    Stats
}

// Stats counts events of connections.
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
	m := &Manager{net: c.Network, log: c.Log, addrs: c.Addrs, links: links{c.Addrs, c.Scopes}, timeout: c.Timeout,
		maxDepth: c.MaxDepth,
		numbers:  newPortNumbers(&c), incoming: map[requestKey]*ID{}, refused: map[requestKey]*refusal{},
		leaving: map[*ID]struct{}{}, waiting: places.New(maxWaiting), tokens: tokens{c.Secret}}
	m.services = services{m: m, secret: c.Secret, replies: map[requestKey]*Message{}}
	return m
}

// SetTimeout changes how long handshakes are tried, including those in progress.
func (m *Manager) SetTimeout(t clock.Time) { m.timeout = t }

// Create returns a new id on a channel.
func (m *Manager) Create(owner Owner, ch Channel) *ID {
	id := &ID{Channel: ch, Owner: owner, binding: binding{dev: -1}}
	id.timer = clock.NewTimer(func() { m.tick(id) })
	return id
}

// Destroy removes an id. If it has a connection, the connection ends; if it has an unanswered request, the
// request is rejected.
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
		m.closeSocketsLater(id)
	} else {
		m.closeSockets(id)
	}
	if id.conn != nil {
		id.conn.Disconnect()
	}
	m.numbers.remove(id)
	id.uncountUnproved()
	m.requestOver(id)
	id.state = ended
}

// Migrate directs an id's further events to another channel.
func (m *Manager) Migrate(id *ID, ch Channel) { id.Channel = ch }

// tick is an id's timer function.
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
		m.closeSockets(id)
		m.deliver(id, Event{Kind: EventTimewaitExit})
	}
}

// after calls fn after a time.
func (m *Manager) after(d clock.Time, fn func()) { m.net.Set(clock.NewTimer(fn), m.net.Now()+d) }

// Len returns the number of entries in the tables: bound ids, requests and rejects that are kept, and port
// numbers reserved for a listener.
func (m *Manager) Len() int {
	return len(m.numbers.ids) + len(m.incoming) + len(m.refused) + len(m.services.replies) +
		len(m.numbers.reserved) + len(m.leaving)
}

const einval = syscall.EINVAL

// in returns an error unless the id is in one of the states.
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

// retryAfter returns the pause after a number of repetitions.
func retryAfter(tries int) clock.Time { return min(firstRetry<<min(tries, 10), maxRetry) }

// timeSpent returns the total duration of a number of repetitions.
func timeSpent(tries int) (t clock.Time) {
	for i := range tries {
		t += retryAfter(i)
	}
	return t
}

// mostPatience is the longest time for a peer's program to answer: by saying that the request has arrived,
// its host keeps an id and a port number of ours in use.
const mostPatience = 3600 * clock.Second

// retry sets an id's timer for the next repetition; false if its time is over. A peer's program may take
// longer to answer as long as its host responds.
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
