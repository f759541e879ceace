package verbs

import (
	"fmt"
	"net/netip"
	"syscall"

	"urdma/verbs/abi"
)

// Number is what one program tells another, by whatever way they have, so that
// their queue pairs can be connected: the port's address, which is its GID, and
// the queue pair's number.
type Number struct {
	Addr netip.Addr
	QPN  uint32
}

// Number is the queue pair's own, for the peer.
func (q *QP) Number() Number { return Number{q.pd.ctx.device.Prefix.Addr(), q.qpn} }

// ConnectNumber connects the queue pair with the one that peer names, which
// must be connected with this one in turn, before or after: ibv_modify_qp(3)
// to RTR and RTS. Receives may be posted before. It does not wait: what is sent
// before the peer has come goes out when it does, and fails with StatusRetryExcErr
// after two seconds. Modify to abi.QPSReset and abi.QPSInit makes the queue pair
// ready for another peer.
func (q *QP) ConnectNumber(peer Number) error {
	if !peer.Addr.Is4() {
		return fmt.Errorf("verbs: the peer's address is %v, expected an IPv4 address: %w", peer.Addr, syscall.EAFNOSUPPORT)
	}
	reads := uint32(q.pd.ctx.device.MaxReads)
	attr := QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: peer.QPN, MaxDestRdAtomic: reads, MinRNRTimer: 12,
		IsGlobal: 1, DGID: peer.Addr.As16(), AHPortNum: 1, HopLimit: 64}
	if err := q.Modify(&attr, abi.QPMaskState|abi.QPMaskAV|abi.QPMaskPathMTU|abi.QPMaskDestQPN|abi.QPMaskRQPSN|
		abi.QPMaskMaxDestRdAtomic|abi.QPMaskMinRNRTimer); err != nil {
		return err
	}
	attr = QPAttr{QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: reads}
	return q.Modify(&attr, abi.QPMaskState|abi.QPMaskTimeout|abi.QPMaskRetryCnt|abi.QPMaskRNRRetry|abi.QPMaskSQPSN|
		abi.QPMaskMaxQPRdAtomic)
}
