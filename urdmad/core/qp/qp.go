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

// RDMAConnectAccess are the access rights that a queue pair grants its peer until MODIFY_QP
// changes them: those of rdma_cm connections.
const RDMAConnectAccess = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic

const (
	// MaxSGE is the largest number of scatter/gather elements in a work request.
	MaxSGE = 32
	// MaxMessage is the longest message, in bytes (RFC 5040 allows 2^32-1).
	MaxMessage = 1 << 31
)

// Config holds the parameters of CREATE_QP; they stay constant.
type Config struct {
	Handle     uint32
	Type       uint32 // enum ibv_qp_type; 0: RC
	Client     *Client
	PD         uint64 // protection domain, unique over all clients
	SendCQ     *CQ
	RecvCQ     *CQ
	Async      *events.Socket // asynchronous events
	SigAll     bool           // every send writes a completion (sq_sig_all)
	Cap        abi.QPCap
	Domain     *Domain    // XRC domain if Type is XRC_RECV; such a queue pair has neither PD nor queues
	SRQ        *RecvQueue // shared receive queue; nil: the queue pair has its own receive queue
	UserHandle uint64     // chosen by the client, returned in every completion
	MaxMessage uint32     // bytes; 0: MaxMessage
	Ports      uint32     // number of ports of its device; 0: 1
}

// QP is a queue pair. The worker owns it; its rings are shared with the client.
type QP struct {
	Config
	QPN  uint32
	Attr abi.QPAttr // set by MODIFY_QP; the state is in State

	SQ   SendQueue
	RQ   *RecvQueue // its own, or a shared receive queue
	Recv Receive    // the receive that an arriving message fills

	Stats Counters

	References Targets // for type XRC_RECV: the clients that have a handle of it

	written *mem.Region // region of the last Write, most often the next one's too

	t       *Table
	state   uint32 // enum ibv_qp_state
	carrier Carrier
	acked   uint64 // sends whose mark is at most this have arrived at the peer
	jobs    jobs
	inRun   bool // in the table's run queue
	heard   bool // IBV_EVENT_COMM_EST was sent
	removed bool
	unready bool // a message found a receive queue to which nothing had ever been posted

	leaving   bool // see SendLast
	abandoned bool // see abandon

	ordinal uint64 // position among all queue pairs ever added
	at      int    // index in Table.order
	broken  broken

	why   reason.Number // reason for the error state; 0: unknown or not in error
	found Found         // facts about the last refused message, from arrive.go or from the peer
	wrong Element       // invalid element of the oldest invalid send, until that fails; length 0: none
}

// Counters count the work of a queue pair.
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

// PrivateBytes returns the largest amount of urdmad's private memory that a queue pair may use,
// most of it for copies of work requests.
func PrivateBytes(layout *abi.QPResponse) uint64 {
	perSlot := uint64(reflect.TypeFor[SendWR]().Size()) + uint64(reflect.TypeFor[ReadAhead]().Size()) +
		uint64(max(layout.Cap.MaxSendSGE, 1))*uint64(reflect.TypeFor[element]().Size())
	return uint64(layout.SQ.Entries) * perSlot
}

// Table returns the table to which the queue pair was added.
func (q *QP) Table() *Table { return q.t }

// Carrier returns the queue pair's carrier, or nil.
func (q *QP) Carrier() Carrier { return q.carrier }

// Connection returns the queue pair's connection, or nil.
func (q *QP) Connection() *Connection {
	if q.carrier == nil {
		return nil
	}
	return q.carrier.Common()
}

// abandon ends the queue pair's connection, and drops its work without completions: the work of a
// queue pair that is destroyed or reset is outside the scope of the adapter (InfiniBand vol. 1).
// Another thread that polls or waits for an event could take such a completion for one of a live
// queue pair, and ibv_destroy_cq would wait for its event to be acknowledged.
func (t *Table) abandon(q *QP) {
	q.abandoned = true
	if q.carrier != nil {
		q.carrier.Detach()
	}
	q.releaseWork()
}

// Removed reports whether the queue pair was removed.
func (q *QP) Removed() bool { return q.removed }

// releaseWork drops all outstanding work and releases its regions.
func (q *QP) releaseWork() {
	q.t.spent += q.SQ.Outstanding() * dropCost
	q.SQ.drop()
	q.Recv.drop()
	q.jobs.forget(func(deferredRecv) bool { return true })
	q.written = nil
}

// user returns the queue pair's identity for access checks of memory.
func (q *QP) user() mem.User { return mem.User{PD: q.PD, Stream: q.QPN} }

// Fill is the fill level of a queue pair.
type Fill struct {
	SendDepth, SendFill int    // slots, and work requests posted but not completed
	RecvDepth, RecvFill int    // slots, and work requests posted but not completed
	ReadsOut, ReadsIn   int    // unanswered Reads: ours, and the peer's
	FallbackWaiting     uint64 // writes on the fallback path that have not ended
}

// Fill returns the fill level of the queue pair. It includes posts that have not been fetched
// yet.
func (q *QP) Fill() Fill {
	f := Fill{SendDepth: q.SQ.Slots(), SendFill: q.SQ.Posted(), RecvDepth: q.RQ.Slots(), RecvFill: q.RQ.Posted(),
		ReadsOut: q.SQ.reads, FallbackWaiting: q.jobs.issued - q.jobs.done}
	if q.carrier != nil {
		f.ReadsIn = q.carrier.Serving()
	}
	return f
}
