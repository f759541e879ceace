package verbs

import (
	"fmt"
	"net/netip"
	"syscall"

	"urdma/verbs/abi"
)

// Number identifies a queue pair: the port's address, which is its GID, and the queue pair's number. Programs
// exchange Numbers by their own means, to connect their queue pairs or to send datagrams.
type Number struct {
	Addr netip.Addr
	QPN  uint32
}

// Number returns the queue pair's own Number, for the peer.
func (q *QP) Number() Number { return Number{q.ctx.device.Prefix.Addr(), q.pair.QPN} }

// ConnectNumber connects the queue pair with the peer's, which must be connected with this one in turn,
// before or after: ibv_modify_qp(3) to RTR and RTS. Receives may be posted before. It does not wait: messages
// posted before the peer has connected are sent when it does, and fail with StatusRetryExcErr after two
// seconds. Modify to abi.QPSReset and abi.QPSInit makes the queue pair ready for another peer.
//
// Queue pairs of type UC are connected in the same way; messages sent before the peer has connected are lost,
// and complete as all others do. Queue pairs of type UD have no peer: EINVAL.
func (q *QP) ConnectNumber(peer Number) error {
	if own := q.Number().Addr; peer.Addr.Unmap().Is4() != own.Is4() {
		return fmt.Errorf("verbs: the peer's address is %v, expected one of the family of ours, %v: %w", peer.Addr, own,
			syscall.EAFNOSUPPORT)
	}
	switch q.kind {
	case UD:
		return fmt.Errorf("verbs: a queue pair of type UD has no peer to connect to: %w", syscall.EINVAL)
	case UC:
		return q.connectUC(peer)
	}
	reads := uint32(q.ctx.device.MaxReads)
	attr := q.receiving(peer)
	attr.MaxDestRdAtomic, attr.MinRNRTimer = reads, 12
	if err := q.Modify(&attr, receivingMask|abi.QPMaskMaxDestRdAtomic|abi.QPMaskMinRNRTimer); err != nil {
		return err
	}
	attr = QPAttr{QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: reads}
	return q.Modify(&attr, abi.QPMaskState|abi.QPMaskTimeout|abi.QPMaskRetryCnt|abi.QPMaskRNRRetry|abi.QPMaskSQPSN|
		abi.QPMaskMaxQPRdAtomic)
}

func (q *QP) connectUC(peer Number) error {
	attr := q.receiving(peer)
	if err := q.Modify(&attr, receivingMask); err != nil {
		return err
	}
	return q.Modify(&QPAttr{QPState: abi.QPSRTS}, abi.QPMaskState|abi.QPMaskSQPSN)
}

// receivingMask names the attributes that receiving sets.
const receivingMask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN

// receiving returns the attributes with which a queue pair of type RC or UC moves to RTR.
func (q *QP) receiving(peer Number) QPAttr {
	return QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: peer.QPN, IsGlobal: 1, DGID: peer.Addr.As16(),
		AHPortNum: uint32(q.ctx.device.Port),
		HopLimit:  64}
}
