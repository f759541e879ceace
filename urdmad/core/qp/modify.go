package qp

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"urdma/reason"
	"urdma/verbs/abi"
)

// Errors of Modify.
var (
	ErrTransition = errors.New("qp: no such queue pair state transition")
	ErrAttribute  = errors.New("qp: wrong attribute")
)

// ControlledQKey is the bit that marks the Q_Keys of management datagrams. A work request with
// the bit set uses the queue pair's own Q_Key instead (InfiniBand vol. 1), so that only
// privileged queue pairs can send such datagrams.
const ControlledQKey = 1 << 31

// CheckModify returns the error that Modify would return, and changes nothing.
func (q *QP) CheckModify(mask uint32, a *abi.QPAttr) error {
	return q.checkStep(q.state, mask, a)
}

// checkStep is CheckModify for a queue pair in the state from.
func (q *QP) checkStep(from, mask uint32, a *abi.QPAttr) error {
	if mask&abi.QPMaskCurState != 0 && a.CurQPState != from {
		return fmt.Errorf("%w: the state is %s, not %s as cur_qp_state says", ErrTransition, abi.QPStateText(from),
			abi.QPStateText(a.CurQPState))
	}
	to := from
	if mask&abi.QPMaskState != 0 {
		to = a.QPState
	}
	given := mask &^ abi.QPMaskState
	if to == abi.QPSReset || to == abi.QPSErr && from != abi.QPSReset {
		if given != 0 {
			return fmt.Errorf("%w: %s beside a move to %s, expected IBV_QP_STATE alone", ErrAttribute, abi.QPMaskText(given),
				abi.QPStateText(to))
		}
		return nil
	}
	m, ok := transitions[q.Type][[2]uint32{from, to}]
	if !ok {
		return fmt.Errorf("%w: from %s to %s", ErrTransition, abi.QPStateText(from), abi.QPStateText(to))
	}
	if missing, extra := m.required&^given, given&^(m.required|m.optional); missing|extra != 0 {
		return maskError(from, to, missing, extra)
	}
	return q.checkValues(mask, a)
}

func maskError(from, to, missing, extra uint32) error {
	var parts []string
	if missing != 0 {
		parts = append(parts, "lacks "+abi.QPMaskText(missing))
	}
	if extra != 0 {
		parts = append(parts, "may not have "+abi.QPMaskText(extra))
	}
	return fmt.Errorf("%w: from %s to %s the mask %s", ErrAttribute, abi.QPStateText(from), abi.QPStateText(to),
		strings.Join(parts, " and "))
}

// limits are the value ranges of attributes.
var limits = []struct {
	mask uint32
	name string
	of   func(*abi.QPAttr) uint32
	min  uint32
	max  uint32
}{
	{abi.QPMaskPKeyIndex, "pkey_index", func(a *abi.QPAttr) uint32 { return a.PKeyIndex }, 0, 0},
	{abi.QPMaskPort, "port_num", func(a *abi.QPAttr) uint32 { return a.PortNum }, 1, anyPort},
	{abi.QPMaskPathMTU, "path_mtu", func(a *abi.QPAttr) uint32 { return a.PathMTU }, 1, 5},
	{abi.QPMaskDestQPN, "dest_qp_num", func(a *abi.QPAttr) uint32 { return a.DestQPNum }, 0, 1<<24 - 1},
	{abi.QPMaskMinRNRTimer, "min_rnr_timer", func(a *abi.QPAttr) uint32 { return a.MinRNRTimer }, 0, 31},
	{abi.QPMaskTimeout, "timeout", func(a *abi.QPAttr) uint32 { return a.Timeout }, 0, 31},
	{abi.QPMaskRetryCnt, "retry_cnt", func(a *abi.QPAttr) uint32 { return a.RetryCnt }, 0, 7},
	{abi.QPMaskRNRRetry, "rnr_retry", func(a *abi.QPAttr) uint32 { return a.RNRRetry }, 0, 7},
	{abi.QPMaskMaxQPRdAtomic, "max_rd_atomic", func(a *abi.QPAttr) uint32 { return a.MaxRdAtomic }, 0, 255},
	{abi.QPMaskMaxDestRdAtomic, "max_dest_rd_atomic", func(a *abi.QPAttr) uint32 { return a.MaxDestRdAtomic }, 0, 255},
	{abi.QPMaskAV, "ah_attr.port_num", func(a *abi.QPAttr) uint32 { return a.AHPortNum }, 1, anyPort},
	{abi.QPMaskAV, "ah_attr.grh.sgid_index", func(a *abi.QPAttr) uint32 { return a.SGIDIndex * a.IsGlobal }, 0,
		3}, // a RoCE port has the most entries in its GID table; the client library knows the others
}

// anyPort stands for the number of ports of the device.
const anyPort = math.MaxUint32

func (q *QP) checkValues(mask uint32, a *abi.QPAttr) error {
	for _, l := range limits {
		if l.max == anyPort {
			l.max = max(q.Ports, 1)
		}
		if v := l.of(a); mask&l.mask != 0 && (v < l.min || v > l.max) {
			return fmt.Errorf("%w: %s is %d, allowed: %d to %d", ErrAttribute, l.name, v, l.min, l.max)
		}
	}
	return nil
}

// CheckReads returns an error if the attributes ask for more outstanding Reads and atomics than
// the device allows, which is most.
func CheckReads(mask uint32, a *abi.QPAttr, most uint32) error {
	for _, r := range []struct {
		mask, asked uint32
		name        string
	}{
		{abi.QPMaskMaxQPRdAtomic, a.MaxRdAtomic, "max_rd_atomic"},
		{abi.QPMaskMaxDestRdAtomic, a.MaxDestRdAtomic, "max_dest_rd_atomic"},
	} {
		if mask&r.mask != 0 && r.asked > most {
			return fmt.Errorf("%w: %s is %d, allowed: 0 to %d", ErrAttribute, r.name, r.asked, most)
		}
	}
	return nil
}

// Modify changes attributes and state (ibv_modify_qp(3)). If it returns an error, nothing has
// changed.
func (q *QP) Modify(mask uint32, a *abi.QPAttr) error {
	if err := q.CheckModify(mask, a); err != nil {
		return err
	}
	setAttributes(&q.Attr, mask, a)
	if mask&abi.QPMaskState != 0 {
		q.setState(a.QPState)
	}
	q.SQ.maxReads = int(maxReads(&q.Attr, q.carrier))
	return nil
}

func setAttributes(own *abi.QPAttr, mask uint32, a *abi.QPAttr) {
	for _, f := range []struct {
		mask     uint32
		to, from *uint32
	}{
		{abi.QPMaskAccessFlags, &own.QPAccessFlags, &a.QPAccessFlags},
		{abi.QPMaskPKeyIndex, &own.PKeyIndex, &a.PKeyIndex},
		{abi.QPMaskPort, &own.PortNum, &a.PortNum},
		{abi.QPMaskQKey, &own.QKey, &a.QKey},
		{abi.QPMaskPathMTU, &own.PathMTU, &a.PathMTU},
		{abi.QPMaskDestQPN, &own.DestQPNum, &a.DestQPNum},
		{abi.QPMaskMinRNRTimer, &own.MinRNRTimer, &a.MinRNRTimer},
		{abi.QPMaskTimeout, &own.Timeout, &a.Timeout},
		{abi.QPMaskRetryCnt, &own.RetryCnt, &a.RetryCnt},
		{abi.QPMaskRNRRetry, &own.RNRRetry, &a.RNRRetry},
		{abi.QPMaskMaxQPRdAtomic, &own.MaxRdAtomic, &a.MaxRdAtomic},
		{abi.QPMaskMaxDestRdAtomic, &own.MaxDestRdAtomic, &a.MaxDestRdAtomic},
		{abi.QPMaskEnSQDAsyncNotify, &own.EnSQDAsyncNotify, &a.EnSQDAsyncNotify},
	} {
		if mask&f.mask != 0 {
			*f.to = *f.from
		}
	}
	if mask&abi.QPMaskRQPSN != 0 {
		own.RQPSN = a.RQPSN & 0xffffff
	}
	if mask&abi.QPMaskSQPSN != 0 {
		own.SQPSN = a.SQPSN & 0xffffff
	}
	if mask&abi.QPMaskAV != 0 {
		own.DLID, own.SGIDIndex, own.DGID, own.IsGlobal = a.DLID, a.SGIDIndex, a.DGID, a.IsGlobal
		own.FlowLabel, own.HopLimit, own.TrafficClass = a.FlowLabel, a.HopLimit, a.TrafficClass
		own.SL, own.StaticRate, own.SrcPathBits, own.AHPortNum = a.SL, a.StaticRate, a.SrcPathBits, a.AHPortNum
	}
}

func (q *QP) setState(to uint32) {
	switch to {
	case abi.QPSErr:
		q.Flush(reason.ByProgram)
		if q.carrier != nil {
			q.carrier.Failed() // at once: flushed work requests cannot be retransmitted
		}
	case abi.QPSReset:
		q.t.abandon(q)
		q.reset()
	default:
		if q.state == abi.QPSSQE {
			q.flushFetched(math.MaxInt) // the program must post them again
			q.SQ.recover()
		}
		q.moveTo(to)
		q.SQ.draining = to == abi.QPSSQD
		q.Post()
		q.t.Ready(q)
		q.t.tellDrained(q)
	}
}
