package control

import (
	"urdma/inject"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file answers those who ask for what urdma exec --strict has done.

const (
	oneIn      = 4                       // messages, of which one waits for its receive
	lateBytes  = 300 * clock.Microsecond // of a Write, behind the last byte of a piece
	extraEvent = clock.Millisecond       // behind one that tells of a completion
)

// strictly is the rule that has a behaviour, abi.Strict*, done to the client, or nil.
func (f *faults) strictly(behaviour uint32) *injection {
	for _, i := range f.at[inject.Strictly] {
		if i.Strict.Behaviours&behaviour != 0 {
			return i
		}
	}
	return nil
}

// hit counts one that was done.
func (f *faults) hit(i *injection) {
	i.Hits++
	f.x.w.injected.hits++
}

// Pick is qp.Faults'.
func (f *faults) Pick(posted int) int {
	i := f.strictly(abi.StrictSRQOrder)
	if i == nil {
		return 0
	}
	which := i.IntN(posted)
	if which > 0 {
		f.hit(i)
	}
	return which
}

// chance reports whether a behaviour is done this time: each time, or one time in n.
func (f *faults) chance(behaviour uint32, oneIn int) bool {
	i := f.strictly(behaviour)
	if i == nil || i.IntN(oneIn) != 0 {
		return false
	}
	f.hit(i)
	return true
}

// strictVerdict has a message wait for its receive; only queue pairs whose peers try again.
func (f *faults) strictVerdict(q *qp.QP, m qp.Message) qp.Verdict {
	if m == qp.MessageSend && q.Type != abi.QPTypeUD && q.Type != abi.QPTypeUC && f.chance(abi.StrictRNR, oneIn) {
		return qp.Verdict{Is: qp.NoReceive}
	}
	return qp.Verdict{}
}

// notifyAgain is how long after a completion event another comes, or 0.
func (f *faults) notifyAgain() clock.Time {
	if f.chance(abi.StrictSpurious, 1) {
		return extraEvent
	}
	return 0
}

// Place is qp.Faults'.
func (f *faults) Place(*qp.QP) clock.Time {
	if f.chance(abi.StrictWriteOrder, 2) {
		return lateBytes
	}
	return 0
}

// freed are the names that a client has given back last, 0: none.
type freed struct {
	qpn  uint32
	stag mem.STag
}

// again returns a name that was freed, for what is made now, or 0.
func again[T ~uint32](x *Session, name *T) (n T) {
	if *name != 0 && x.faults.chance(abi.StrictReuse, 1) {
		n, *name = *name, 0
	}
	return n
}

// Misfit is qp.Faults'. Queue pairs that are connected by number alone: rdma_cm has had the
// others agree.
func (f *faults) Misfit(q *qp.QP, reads int, length uint32) uint32 {
	i, c := f.strictly(abi.StrictAttributes), q.Connection()
	if i == nil || q.Type != abi.QPTypeRC || c == nil || !c.ByNumber {
		return abi.StatusSuccess
	}
	status := uint32(abi.StatusSuccess)
	switch own := &q.Attr; {
	case c.PeerMTU != 0 && (own.SQPSN^c.PeerPSN)&0xffffff != 0:
		status = abi.StatusRetryExcErr // the peer drops its packets
	case c.PeerMTU != 0 && own.PathMTU != uint32(c.PeerMTU) && length > 128<<min(own.PathMTU, uint32(c.PeerMTU)),
		uint32(reads) > peerReads(q):
		status = abi.StatusRemInvReqErr
	default:
		return status
	}
	f.hit(i)
	return status
}
