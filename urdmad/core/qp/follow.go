package qp

import "urdma/verbs/abi"

// A program can create a queue pair itself and pass its number to rdma_cm (rping -q). Such a
// queue pair is in RTS once the connection is established, before the program has taken the steps
// to RTS that rdma_init_qp_attr(3) describes. Its later steps are checked against the state that
// the program knows, and change attributes only. The values agreed in the handshake stay in
// force.

const agreed = abi.QPMaskMaxQPRdAtomic | abi.QPMaskMaxDestRdAtomic

// Follows reports whether a call of Modify would be such a step.
func (q *QP) Follows(mask uint32, a *abi.QPAttr) bool {
	c := q.Connection()
	if c == nil || c.ByNumber || q.state != abi.QPSRTS || mask&abi.QPMaskState == 0 {
		return false
	}
	return a.QPState == abi.QPSInit || a.QPState == abi.QPSRTR || a.QPState == abi.QPSRTS && mask&abi.QPMaskSQPSN != 0
}

// Follow takes such a step.
func (q *QP) Follow(mask uint32, a *abi.QPAttr) error {
	from := uint32(abi.QPSInit)
	if a.QPState == abi.QPSRTS {
		from = abi.QPSRTR
	}
	if err := q.checkStep(from, mask, a); err != nil {
		return err
	}
	setAttributes(&q.Attr, mask&^agreed, a)
	return nil
}
