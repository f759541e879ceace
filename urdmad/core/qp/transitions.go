package qp

import "urdma/verbs/abi"

// masks are the attributes that a transition requires, and those that it also accepts.
type masks struct{ required, optional uint32 }

const (
	anyPath  = abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags
	whenSent = newAccess | abi.QPMaskMinRNRTimer

	newAccess = abi.QPMaskCurState | abi.QPMaskAccessFlags | abi.QPMaskPathMigState
	inDrained = anyPath | abi.QPMaskAV | abi.QPMaskPathMigState

	toDatagrams  = abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey
	newDatagrams = abi.QPMaskCurState | abi.QPMaskQKey
)

// transitions are the state transitions of each queue pair type (ibv_modify_qp(3)), without those
// for alternate paths. A move to RESET or ERR accepts the state only; there is no move from RESET
// to ERR.
var transitions = map[uint32]map[[2]uint32]masks{
	abi.QPTypeRC: {
		{abi.QPSReset, abi.QPSInit}: {required: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSInit}:  {optional: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSRTR}: {abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
			abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer, anyPath},
		{abi.QPSRTR, abi.QPSRTS}: {abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskSQPSN |
			abi.QPMaskMaxQPRdAtomic, whenSent},
		{abi.QPSRTS, abi.QPSRTS}: {optional: whenSent},
		{abi.QPSRTS, abi.QPSSQD}: {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}: {optional: whenSent},
		{abi.QPSSQD, abi.QPSSQD}: {optional: inDrained | abi.QPMaskPort | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
			abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic | abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer},
	},
	abi.QPTypeUC: {
		{abi.QPSReset, abi.QPSInit}: {required: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSInit}:  {optional: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSRTR}:   {abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN, anyPath},
		{abi.QPSRTR, abi.QPSRTS}:    {abi.QPMaskSQPSN, newAccess},
		{abi.QPSRTS, abi.QPSRTS}:    {optional: newAccess},
		{abi.QPSRTS, abi.QPSSQD}:    {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}:    {optional: newAccess},
		{abi.QPSSQD, abi.QPSSQD}:    {optional: inDrained},
		{abi.QPSSQE, abi.QPSRTS}:    {optional: abi.QPMaskCurState | abi.QPMaskAccessFlags},
	},
	abi.QPTypeUD: {
		{abi.QPSReset, abi.QPSInit}: {required: toDatagrams},
		{abi.QPSInit, abi.QPSInit}:  {optional: toDatagrams},
		{abi.QPSInit, abi.QPSRTR}:   {optional: abi.QPMaskPKeyIndex | abi.QPMaskQKey},
		{abi.QPSRTR, abi.QPSRTS}:    {required: abi.QPMaskSQPSN, optional: newDatagrams},
		{abi.QPSRTS, abi.QPSRTS}:    {optional: newDatagrams},
		{abi.QPSRTS, abi.QPSSQD}:    {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}:    {optional: newDatagrams},
		{abi.QPSSQD, abi.QPSSQD}:    {optional: abi.QPMaskPKeyIndex | abi.QPMaskQKey},
		{abi.QPSSQE, abi.QPSRTS}:    {optional: newDatagrams},
	},
	abi.QPTypeRawPacket: {
		{abi.QPSReset, abi.QPSInit}: {required: abi.QPMaskPort, optional: abi.QPMaskPKeyIndex},
		{abi.QPSInit, abi.QPSInit}:  {optional: abi.QPMaskPort | abi.QPMaskPKeyIndex},
		{abi.QPSInit, abi.QPSRTR}:   {},
		{abi.QPSRTR, abi.QPSRTS}:    {optional: abi.QPMaskCurState},
		{abi.QPSRTS, abi.QPSRTS}:    {optional: abi.QPMaskCurState},
		{abi.QPSRTS, abi.QPSSQD}:    {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}:    {optional: abi.QPMaskCurState},
		{abi.QPSSQE, abi.QPSRTS}:    {optional: abi.QPMaskCurState},
	},
	abi.QPTypeXRCSend: {
		{abi.QPSReset, abi.QPSInit}: {required: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSInit}:  {optional: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSRTR}:   {abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN, anyPath},
		{abi.QPSRTR, abi.QPSRTS}: {abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskSQPSN |
			abi.QPMaskMaxQPRdAtomic, newAccess},
		{abi.QPSRTS, abi.QPSRTS}: {optional: newAccess},
		{abi.QPSRTS, abi.QPSSQD}: {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}: {optional: newAccess},
		{abi.QPSSQD, abi.QPSSQD}: {optional: inDrained | abi.QPMaskPort | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
			abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic},
	},
	abi.QPTypeXRCRecv: {
		{abi.QPSReset, abi.QPSInit}: {required: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSInit}:  {optional: abi.QPMaskPort | anyPath},
		{abi.QPSInit, abi.QPSRTR}: {abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
			abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer, anyPath},
		{abi.QPSRTR, abi.QPSRTS}: {abi.QPMaskTimeout | abi.QPMaskSQPSN, whenSent},
		{abi.QPSRTS, abi.QPSRTS}: {optional: whenSent},
		{abi.QPSRTS, abi.QPSSQD}: {optional: abi.QPMaskEnSQDAsyncNotify},
		{abi.QPSSQD, abi.QPSRTS}: {optional: whenSent},
		{abi.QPSSQD, abi.QPSSQD}: {optional: inDrained | abi.QPMaskPort | abi.QPMaskTimeout | abi.QPMaskMaxDestRdAtomic |
			abi.QPMaskMinRNRTimer},
	},
}

// IgnoredAttributes are the attributes that MODIFY_QP accepts and ignores, as Linux does: each
// end of an XRC connection uses only half of them, and programs set both halves.
func IgnoredAttributes(kind uint32) uint32 {
	switch kind {
	case abi.QPTypeXRCSend:
		return abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer
	case abi.QPTypeXRCRecv:
		return abi.QPMaskMaxQPRdAtomic | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry
	}
	return 0
}
