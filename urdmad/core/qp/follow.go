package qp

import "urdma/verbs/abi"

// A queue pair that its program made itself and gave rdma_cm by its number is in
// RTS once the connection stands, before the program has taken the steps there
// that rdma_init_qp_attr(3) names (rping -q). A step that follows so is checked
// as from the state that the program knows, and changes attributes alone. What
// the handshake agreed on stays in force.

const agreed = abi.QPMaskMaxQPRdAtomic | abi.QPMaskMaxDestRdAtomic

// Follows reports whether Modify would be such a step.
func (q *QP) Follows(mask uint32, a *abi.QPAttr) bool {
	c := q.Connection()
	if c == nil || c.ByNumber || q.state != abi.QPSRTS || mask&abi.QPMaskState == 0 {
		return false
	}
	return a.QPState == abi.QPSInit || a.QPState == abi.QPSRTR || a.QPState == abi.QPSRTS && mask&abi.QPMaskSQPSN != 0
}

// Follow takes the step.
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
