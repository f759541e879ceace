package qp

import (
	"reflect"

	"urdma/counters"
	"urdma/reason"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Config is what CREATE_QP asked for; constant for the queue pair's life.
type Config struct {
	Handle     uint32
	Type       uint32 // enum ibv_qp_type; 0: RC
	Client     *Client
	PD         uint64 // protection domain, unique over all clients
	SendCQ     *CQ
	RecvCQ     *CQ
	Async      *events.Socket // asynchronous events
	SigAll     bool           // every send completes with an entry
	Cap        abi.QPCap
	Domain     *Domain    // of type XRC_RECV: its XRC domain; it has neither PD nor queues
	SRQ        *RecvQueue // nil: it has a receive queue of its own
	UserHandle uint64     // the client's: every completion brings it back
	MaxMessage uint32     // bytes; 0: MaxMessage
	Ports      uint32     // that its device has; 0: 1
}

// QP is a queue pair. The worker owns it; its rings are shared with the client.
type QP struct {
	Config
	QPN  uint32
	Attr abi.QPAttr // what MODIFY_QP set; State has the state

	SQ   SendQueue
	RQ   *RecvQueue // its own, or one that other queue pairs draw from too
	Recv Receive    // what an arriving message fills

	Stats Counters

	References Targets // of type XRC_RECV: the clients that hold it

	written *mem.Region // of the last Write that arrived, most often right again

	t       *Table
	state   uint32 // enum ibv_qp_state
	carrier Carrier
	acked   uint64 // sends whose Mark is at most this were carried
	jobs    jobs
	inRun   bool // in the table's run queue
	heard   bool // its program was told that the peer has sent something
	removed bool
	unready bool // a message found a receive queue to which nothing had ever been posted

	leaving   bool // see SendLast
	abandoned bool // see abandon

	ordinal uint64 // of all that were added
	at      int    // in Table.order
	broken  uint64 // see breaks

	why   reason.Number // of the error state; 0: unknown, or there is none
	found Found         // by the last step of arrive.go that refused a message, or by the peer
	wrong Element       // of the oldest send whose list is wrong, until that fails; of length 0: none
}

// Counters count a queue pair's work.
type Counters struct {
	SendsPosted  uint64 `counter:"sends_posted"`
	RecvsPosted  uint64 `counter:"receives_posted"`
	MessagesSent uint64 `counter:"messages_sent"`
	MessagesRecv uint64 `counter:"messages_received"`
	BytesSent    uint64 `counter:"bytes_sent"`
	BytesRecv    uint64 `counter:"bytes_received"`
	FallbackJobs uint64 `counter:"fallback_jobs"`
}

var work = counters.NewSum[Counters]("counter")

// New returns a queue pair whose rings lie in mem as layout says. It may run on
// any thread.
func New(c Config, mem []byte, layout *abi.QPResponse) *QP {
	if c.Type == 0 {
		c.Type = abi.QPTypeRC
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = MaxMessage
	}
	q := &QP{Config: c}
	q.Attr.QPAccessFlags = RDMAConnectAccess
	var r ring.ServerQP
	r.Init(mem, layout)
	q.SQ.init(r.SQ, layout.SQ.Entries, c.Cap.MaxSendSGE)
	q.RQ = c.SRQ
	if q.RQ == nil {
		q.RQ = newRecvQueue(r.RQ, c.Cap.MaxRecvSGE)
	}
	q.Recv.init(q)
	q.state = abi.QPSReset
	return q
}

// PrivateBytes is how much memory of urdmad's own a queue pair may come to take,
// most of it for copies of work requests.
func PrivateBytes(layout *abi.QPResponse) uint64 {
	perSlot := uint64(reflect.TypeFor[SendWR]().Size()) + uint64(reflect.TypeFor[Stage]().Size()) +
		uint64(max(layout.Cap.MaxSendSGE, 1))*uint64(reflect.TypeFor[element]().Size())
	return uint64(layout.SQ.Entries) * perSlot
}

// Add makes q known and gives it a number, that which it has already if no other has it.
func (t *Table) Add(q *QP) {
	q.t = t
	for q.QPN == 0 || t.pairs[q.QPN] != nil || t.Elsewhere(q.QPN) {
		q.QPN = t.rand.Uint32N(1<<24-3) + 2 // 0, 1 and 0xffffff are special in InfiniBand
	}
	t.pairs[q.QPN] = q
	t.track(q)
	t.use(q, 1)
}

// use counts the queue pair among the users of what it was made of.
func (t *Table) use(q *QP, by int) {
	for _, c := range []*CQ{q.SendCQ, q.RecvCQ} {
		if c != nil {
			c.users += by
		}
	}
	if d := q.Domain; d != nil && by > 0 {
		d.targets[q] = struct{}{}
	} else if d != nil {
		delete(d.targets, q)
	}
	q.RQ.share(by)
}

// Remove ends q's connection and forgets it.
func (t *Table) Remove(q *QP) {
	t.abandon(q)
	q.removed = true
	work.Into(&t.past, &q.Stats)
	t.run.remove(q)
	delete(t.pairs, q.QPN)
	t.untrack(q)
	t.use(q, -1)
}

// Table is the table that the queue pair was added to.
func (q *QP) Table() *Table { return q.t }

// Carrier is what serves the queue pair, or nil.
func (q *QP) Carrier() Carrier { return q.carrier }

// Connection is the queue pair's connection, or nil.
func (q *QP) Connection() *Connection {
	if q.carrier == nil {
		return nil
	}
	return q.carrier.Common()
}

// abandon ends the queue pair's connection, and its work without completions: work
// of a queue pair that is destroyed or reset is no longer the adapter's (InfiniBand
// vol. 1, 10.2.4.4 and 10.3.1). Another thread that polls, or waits for an event,
// would take a completion for one of a queue pair that goes on, and ibv_destroy_cq
// would wait for that event to be acknowledged.
func (t *Table) abandon(q *QP) {
	q.abandoned = true
	if q.carrier != nil {
		q.carrier.Detach()
	}
	q.releaseWork()
}

// Removed reports whether the queue pair was removed.
func (q *QP) Removed() bool { return q.removed }

// releaseWork lets go of every region that outstanding work holds.
func (q *QP) releaseWork() {
	q.t.spent += q.SQ.Outstanding() * dropCost
	q.SQ.drop()
	q.Recv.drop()
	q.jobs.forget(func(deferredRecv) bool { return true })
	q.written = nil
}
