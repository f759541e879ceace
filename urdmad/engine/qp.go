package engine

import (
	"errors"
	"reflect"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/wire"
)

// Errors of creating and changing queue pairs.
var (
	ErrNoDoorbell = errors.New("engine: the client has used up its 4096 doorbells")
	ErrTransition = errors.New("engine: no such queue pair state transition")
)

// QP is a queue pair. The worker owns it; Ring's memory is shared with the
// client.
type QP struct {
	Handle   uint32
	QPN      uint32
	Client   *Client
	PD       uint64
	SendCQ   *CQ
	RecvCQ   *CQ
	Async    *EventSocket
	SigAll   bool
	Cap      abi.QPCap
	Attr     abi.QPAttr // what MODIFY_QP set; QPState is state
	Ring     ring.ServerQP
	Doorbell int
	// UserHandle is the client's: every completion brings it back.
	UserHandle uint64

	state uint32 // enum ibv_qp_state
	conn  *Conn  // nil until connected
	inRun bool
	gone  bool // removed

	// failed: from a send on, which the ring names, all complete with an entry.
	failed bool

	// Send queue. sqHead..sqTail are outstanding; sqNext is the next to be cut
	// into segments. Free-running indices, slot = index & sqMask.
	sq                     []sendWR
	sqSGE                  []sge // sqStrideSGE per slot
	sqHead, sqNext, sqTail uint32
	sqMask                 uint32
	sendMSN                wire.MSN // of the next message on queue 0
	readMSN                wire.MSN // of the next message on queue 1
	readsOut               int      // Reads sent and not completed, at most conn.ord

	// Receive queue.
	rqHead  uint32
	recv    receive
	recvMSN wire.MSN // expected next on queue 0
	reqMSN  wire.MSN // expected next on queue 1
	irq     []readResponse
	irqHead uint32 // oldest not acknowledged
	irqNext uint32 // next to be cut into segments
	irqTail uint32

	lastRegion *mem.Region // of the last tagged segment, most often right again

	// Jobs on the fallback path, and completions that wait for them.
	asyncIssued, asyncDone uint64
	stages                 uint64
	deferred               []deferredRecv

	Stats QPStats
}

// QPStats counts a queue pair's work.
type QPStats struct {
	SendsPosted, RecvsPosted   uint64
	MessagesSent, MessagesRecv uint64
	BytesSent, BytesRecv       uint64
	FallbackJobs               uint64
}

// sge is a scatter/gather element that was checked: n bytes at va of region.
// bytes is nil on the fallback path.
type sge struct {
	region *mem.Region
	va     uint64
	n      uint32
	bytes  []byte
}

type wrState uint8

const (
	wrQueued  wrState = iota // not all of it cut into segments
	wrStaging                // waits for the fallback path to read its source
	wrSent                   // all segments sent once
	wrFailed                 // found wrong: completes with status when it is oldest
)

// sendWR is urdmad's private copy of a send work request.
type sendWR struct {
	id         uint64
	op         uint32 // enum ibv_wr_opcode
	flags      uint32 // enum ibv_send_flags
	state      wrState
	status     uint32
	vendor     uint32
	rkey       wire.STag
	inv        wire.STag
	raddr      uint64
	length     uint32
	nsge       int
	msn        wire.MSN
	sink       wire.STag // Read: what the request advertises, see read.go
	sent       uint32    // bytes cut into segments so far
	end        wire.PSN  // one past the last segment's
	started    bool
	src        []byte // inline data or staged bytes; else nil and sqSGE counts
	answered   bool   // Read: all of the response has arrived
	stage      uint64 // which staging fills src
	readGot    uint32
	asyncUntil uint64 // Read: completes once asyncDone reached this
}

// receive is the receive work request that an arriving message fills.
type receive struct {
	active   bool
	id       uint64
	sges     []sge
	nsge     int
	capacity uint32
	got      uint32
}

// readResponse is a Read that the peer requested: the responder's work.
type readResponse struct {
	region   *mem.Region
	va       uint64
	src      []byte // nil until staged
	length   uint32
	sent     uint32
	end      wire.PSN
	sinkSTag wire.STag
	sinkTO   uint64
}

// PrivateBytes is how much memory of urdmad's own a queue pair takes, most of
// it for copies of work requests.
func PrivateBytes(layout *abi.QPResponse) uint64 {
	perSlot := uint64(reflect.TypeFor[sendWR]().Size()) + uint64(max(layout.Cap.MaxSendSGE, 1))*uint64(reflect.TypeFor[sge]().Size())
	return uint64(layout.SQ.Entries) * perSlot
}

// Allocate makes the memory of a queue pair that AddQP is about to get: up to
// tens of megabytes, so not on the worker's thread.
func (qp *QP) Allocate(layout *abi.QPResponse) {
	qp.sq = make([]sendWR, layout.SQ.Entries)
	qp.sqSGE = make([]sge, layout.SQ.Entries*max(qp.Cap.MaxSendSGE, 1))
	qp.recv.sges = make([]sge, max(qp.Cap.MaxRecvSGE, 1))
}

// AddQP makes qp known and gives it a number and a doorbell. The caller has
// filled the exported fields and, for what is large, called Allocate.
func (e *Engine) AddQP(qp *QP, layout *abi.QPResponse) error {
	bell, ok := qp.Client.takeBell(qp)
	if !ok {
		return ErrNoDoorbell
	}
	qp.Doorbell = bell
	if qp.sq == nil {
		qp.Allocate(layout)
	}
	qp.sqMask = layout.SQ.Entries - 1
	qp.state = abi.QPSReset
	for qp.QPN == 0 || e.qps[qp.QPN] != nil {
		qp.QPN = e.rand.Uint32N(1<<24-2) + 2 // 0 and 1 are special in InfiniBand
	}
	e.qps[qp.QPN] = qp
	qp.SendCQ.users++
	qp.RecvCQ.users++
	return nil
}

// RemoveQP ends the connection and forgets the queue pair.
func (e *Engine) RemoveQP(qp *QP) {
	if c := qp.conn; c != nil {
		c.abandon()
	}
	qp.gone = true
	e.past.Add(&qp.Stats)
	e.releaseWork(qp)
	e.runq.remove(qp)
	delete(e.qps, qp.QPN)
	qp.Client.byBell[qp.Doorbell] = nil
	qp.SendCQ.users--
	qp.RecvCQ.users--
}

// State is enum ibv_qp_state.
func (qp *QP) State() uint32 { return qp.state }

// Connectable reports whether a connection can be started on the queue pair:
// it exists, has none, and is in RESET or INIT.
func (qp *QP) Connectable() bool {
	return !qp.gone && qp.conn == nil && (qp.state == abi.QPSReset || qp.state == abi.QPSInit)
}

// Conn is the queue pair's connection, or nil.
func (qp *QP) Conn() *Conn { return qp.conn }

// Outstanding is how many send work requests wait for completion.
func (qp *QP) Outstanding() int { return int(qp.sqTail - qp.sqHead) }

func (qp *QP) wr(index uint32) *sendWR { return &qp.sq[index&qp.sqMask] }

func (qp *QP) wrSGE(index uint32) []sge {
	w := max(int(qp.Cap.MaxSendSGE), 1)
	at := int(index&qp.sqMask) * w
	return qp.sqSGE[at : at+w]
}

// ModifyQP changes the state as ibv_modify_qp asks. Moves to RTR and RTS are
// rdma_cm's (Conn.Start); a client may go to RESET, INIT and ERR.
func (e *Engine) ModifyQP(qp *QP, mask uint32, a *abi.QPAttr) error {
	if mask&abi.QPMaskState != 0 {
		if err := e.setState(qp, a.QPState); err != nil {
			return err
		}
	}
	if mask&abi.QPMaskAccessFlags != 0 {
		qp.Attr.QPAccessFlags = a.QPAccessFlags
	}
	if mask&abi.QPMaskMaxQPRdAtomic != 0 {
		qp.Attr.MaxRdAtomic = a.MaxRdAtomic
	}
	if mask&abi.QPMaskMaxDestRdAtomic != 0 {
		qp.Attr.MaxDestRdAtomic = a.MaxDestRdAtomic
	}
	if mask&abi.QPMaskPort != 0 {
		qp.Attr.PortNum = a.PortNum
	}
	return nil
}

func (e *Engine) setState(qp *QP, to uint32) error {
	switch {
	case to == qp.state:
	case to == abi.QPSErr:
		e.errorQP(qp)
		if qp.conn != nil {
			qp.conn.failed() // at once: what was flushed cannot be sent again
		}
	case to == abi.QPSReset:
		if qp.conn != nil {
			qp.conn.abandon()
		}
		e.resetQP(qp)
	case to == abi.QPSInit && qp.state == abi.QPSReset:
		qp.state = to
	default:
		return ErrTransition
	}
	return nil
}

// resetQP forgets all work without completions, as a move to RESET does.
func (e *Engine) resetQP(qp *QP) {
	e.releaseWork(qp)
	if prod, err := qp.Ring.SQ.Prod(qp.sqTail); err == nil {
		qp.sqHead, qp.sqNext, qp.sqTail = prod, prod, prod
	}
	if prod, err := qp.Ring.RQ.Prod(qp.rqHead); err == nil {
		qp.rqHead = prod
	}
	qp.failed = false
	qp.Ring.SQ.ClearFailed()
	qp.Ring.SQ.PublishCons(qp.sqHead)
	qp.Ring.RQ.PublishCons(qp.rqHead)
	qp.state = abi.QPSReset
}

// releaseWork lets go of every region that outstanding work holds.
func (e *Engine) releaseWork(qp *QP) {
	for i := qp.sqHead; i != qp.sqTail; i++ {
		qp.release(i)
	}
	qp.sqHead, qp.sqNext = qp.sqTail, qp.sqTail
	qp.dropReceive()
	for qp.irqHead != qp.irqTail {
		qp.popReadResponse()
	}
	qp.readsOut = 0
	qp.deferred = nil
	qp.lastRegion = nil
}

// release gives back what send work request i holds.
func (qp *QP) release(i uint32) {
	wr := qp.wr(i)
	for j := range qp.wrSGE(i)[:wr.nsge] {
		s := &qp.wrSGE(i)[j]
		s.region.Release()
		*s = sge{}
	}
	wr.nsge, wr.src = 0, nil
}
