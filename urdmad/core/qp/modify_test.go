package qp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"urdma/verbs/abi"
)

// step is what a transition requires and what else it takes.
type step struct {
	from, to           uint32
	required, optional []uint32
}

// specified are the tables of the InfiniBand specification (vol. 1), as
// ibv_modify_qp(3) and Linux have them, but for what loads an alternate path. The
// path migration state goes with the attributes of migrates.
var specified = map[uint32][]step{
	abi.QPTypeRC: {
		{abi.QPSReset, abi.QPSInit, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags), nil},
		{abi.QPSInit, abi.QPSInit, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags)},
		{abi.QPSInit, abi.QPSRTR, bits(abi.QPMaskAV, abi.QPMaskPathMTU, abi.QPMaskDestQPN, abi.QPMaskRQPSN,
			abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer), bits(abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags)},
		{abi.QPSRTR, abi.QPSRTS, bits(abi.QPMaskSQPSN, abi.QPMaskMaxQPRdAtomic, abi.QPMaskRetryCnt, abi.QPMaskRNRRetry,
			abi.QPMaskTimeout),
			bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSRTS, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSRTS, abi.QPSSQD, nil, bits(abi.QPMaskEnSQDAsyncNotify)},
		{abi.QPSSQD, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSSQD, abi.QPSSQD, nil, bits(abi.QPMaskPort, abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags, abi.QPMaskAV,
			abi.QPMaskTimeout,
			abi.QPMaskRetryCnt, abi.QPMaskRNRRetry, abi.QPMaskMaxQPRdAtomic, abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer)},
	},
	abi.QPTypeUC: {
		{abi.QPSReset, abi.QPSInit, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags), nil},
		{abi.QPSInit, abi.QPSInit, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags)},
		{abi.QPSInit, abi.QPSRTR, bits(abi.QPMaskAV, abi.QPMaskPathMTU, abi.QPMaskDestQPN, abi.QPMaskRQPSN),
			bits(abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags)},
		{abi.QPSRTR, abi.QPSRTS, bits(abi.QPMaskSQPSN), bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSRTS, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSRTS, abi.QPSSQD, nil, bits(abi.QPMaskEnSQDAsyncNotify)},
		{abi.QPSSQD, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSSQD, abi.QPSSQD, nil, bits(abi.QPMaskAV, abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags)},
		{abi.QPSSQE, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
	},
	abi.QPTypeUD: {
		{abi.QPSReset, abi.QPSInit, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskQKey), nil},
		{abi.QPSInit, abi.QPSInit, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskQKey)},
		{abi.QPSInit, abi.QPSRTR, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskQKey)},
		{abi.QPSRTR, abi.QPSRTS, bits(abi.QPMaskSQPSN), bits(abi.QPMaskCurState, abi.QPMaskQKey)},
		{abi.QPSRTS, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskQKey)},
		{abi.QPSRTS, abi.QPSSQD, nil, bits(abi.QPMaskEnSQDAsyncNotify)},
		{abi.QPSSQD, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskQKey)},
		{abi.QPSSQD, abi.QPSSQD, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskQKey)},
		{abi.QPSSQE, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskQKey)},
	},
	abi.QPTypeXRCSend: {
		{abi.QPSReset, abi.QPSInit, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags), nil},
		{abi.QPSInit, abi.QPSInit, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags)},
		{abi.QPSInit, abi.QPSRTR, bits(abi.QPMaskAV, abi.QPMaskPathMTU, abi.QPMaskDestQPN, abi.QPMaskRQPSN),
			bits(abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags)},
		{abi.QPSRTR, abi.QPSRTS, bits(abi.QPMaskSQPSN, abi.QPMaskMaxQPRdAtomic, abi.QPMaskRetryCnt, abi.QPMaskRNRRetry,
			abi.QPMaskTimeout),
			bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSRTS, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSRTS, abi.QPSSQD, nil, bits(abi.QPMaskEnSQDAsyncNotify)},
		{abi.QPSSQD, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags)},
		{abi.QPSSQD, abi.QPSSQD, nil, bits(abi.QPMaskPort, abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags, abi.QPMaskAV,
			abi.QPMaskTimeout,
			abi.QPMaskRetryCnt, abi.QPMaskRNRRetry, abi.QPMaskMaxQPRdAtomic)},
	},
	abi.QPTypeXRCRecv: {
		{abi.QPSReset, abi.QPSInit, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags), nil},
		{abi.QPSInit, abi.QPSInit, nil, bits(abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags)},
		{abi.QPSInit, abi.QPSRTR, bits(abi.QPMaskAV, abi.QPMaskPathMTU, abi.QPMaskDestQPN, abi.QPMaskRQPSN,
			abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer), bits(abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags)},
		{abi.QPSRTR, abi.QPSRTS, bits(abi.QPMaskSQPSN, abi.QPMaskTimeout),
			bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSRTS, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSRTS, abi.QPSSQD, nil, bits(abi.QPMaskEnSQDAsyncNotify)},
		{abi.QPSSQD, abi.QPSRTS, nil, bits(abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer)},
		{abi.QPSSQD, abi.QPSSQD, nil, bits(abi.QPMaskPort, abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags, abi.QPMaskAV,
			abi.QPMaskTimeout,
			abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer)},
	},
}

func bits(list ...uint32) []uint32 { return list }

// migrates reports whether a transition of a connected type takes the path migration
// state: all that end in RTS, but the one out of SQE, and the one within SQD.
func migrates(kind, from, to uint32) bool {
	return kind != abi.QPTypeUD && (to == abi.QPSRTS && from != abi.QPSSQE || from == abi.QPSSQD && to == abi.QPSSQD)
}

var states = []uint32{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSSQE, abi.QPSErr}

// stepOf is the row of a table for a transition, nil if there is none.
func stepOf(kind, from, to uint32) *step {
	for i, row := range specified[kind] {
		if row.from == from && row.to == to {
			return &specified[kind][i]
		}
	}
	return nil
}

// allowed says what the table has for a transition and a mask without the state.
func allowed(kind, from, to, mask uint32) bool {
	if to == abi.QPSReset || to == abi.QPSErr && from != abi.QPSReset {
		return mask == 0
	}
	row := stepOf(kind, from, to)
	if row == nil {
		return false
	}
	if migrates(kind, from, to) {
		mask &^= abi.QPMaskPathMigState
	}
	for _, bit := range row.required {
		if mask&bit == 0 {
			return false
		}
		mask &^= bit
	}
	for _, bit := range row.optional {
		mask &^= bit
	}
	return mask == 0
}

// TestMasks tries every transition of every type with what it requires, with any
// one attribute more, and with any one less.
func TestMasks(t *testing.T) {
	tried := 0
	for kind := range specified {
		for _, from := range states {
			for _, to := range states {
				base := uint32(0)
				if row := stepOf(kind, from, to); row != nil {
					for _, bit := range row.required {
						base |= bit
					}
				}
				for bit := range 22 {
					for _, mask := range []uint32{base, base ^ 1<<bit} {
						if mask&abi.QPMaskState == 0 {
							tried++
							tryStep(t, kind, from, to, mask)
						}
					}
				}
			}
		}
	}
	t.Log(tried, "moves tried")
}

func tryStep(t *testing.T, kind, from, to, mask uint32) {
	t.Helper()
	a := abi.QPAttr{QPState: to, CurQPState: from, PortNum: 1, AHPortNum: 1, PathMTU: 3}
	q := QP{Config: Config{Type: kind}, state: from}
	err := q.CheckModify(mask|abi.QPMaskState, &a)
	if want := allowed(kind, from, to, mask); (err == nil) != want {
		t.Errorf("type %d, %d to %d with mask %#x: %v, allowed: %v", kind, from, to, mask, err, want)
	}
	if err != nil && !errors.Is(err, ErrTransition) && !errors.Is(err, ErrAttribute) {
		t.Errorf("%v is of no known kind", err)
	}
}

// checkRC is CheckModify of a reliable connection's queue pair in a state.
func checkRC(from, mask uint32, a *abi.QPAttr) error {
	q := QP{Config: Config{Type: abi.QPTypeRC}, state: from}
	return q.CheckModify(mask, a)
}

// TestWithoutState: without IBV_QP_STATE the state stays, and the mask is that of
// staying there.
func TestWithoutState(t *testing.T) {
	for _, state := range states {
		err := checkRC(state, abi.QPMaskMinRNRTimer, &abi.QPAttr{QPState: abi.QPSErr, MinRNRTimer: 3})
		if want := state == abi.QPSRTS || state == abi.QPSSQD; (err == nil) != want {
			t.Errorf("min_rnr_timer in state %d: %v", state, err)
		}
	}
}

// TestValues: each attribute has its largest value.
func TestValues(t *testing.T) {
	good := abi.QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: 1<<24 - 1, MinRNRTimer: 31, MaxDestRdAtomic: 255,
		AHPortNum: 1}
	const mask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic |
		abi.QPMaskMinRNRTimer
	if err := checkRC(abi.QPSInit, mask, &good); err != nil {
		t.Fatal(err)
	}
	for i, spoil := range []func(*abi.QPAttr){
		func(a *abi.QPAttr) { a.PathMTU = 0 }, func(a *abi.QPAttr) { a.PathMTU = 6 },
		func(a *abi.QPAttr) { a.DestQPNum = 1 << 24 },
		func(a *abi.QPAttr) { a.MinRNRTimer = 32 }, func(a *abi.QPAttr) { a.MaxDestRdAtomic = 256 },
		func(a *abi.QPAttr) { a.AHPortNum = 2 },
		func(a *abi.QPAttr) { a.AHPortNum = 0 },
		func(a *abi.QPAttr) { a.IsGlobal, a.SGIDIndex = 1, 4 },
	} {
		a := good
		spoil(&a)
		if err := checkRC(abi.QPSInit, mask, &a); !errors.Is(err, ErrAttribute) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for port, ok := range []bool{false, true, true, false} { // of a device of two
		q := QP{Config: Config{Type: abi.QPTypeRC, Ports: 2}}
		err := q.CheckModify(abi.QPMaskState|abi.QPMaskPort|abi.QPMaskPKeyIndex|abi.QPMaskAccessFlags,
			&abi.QPAttr{QPState: abi.QPSInit, PortNum: uint32(port)})
		if ok && err != nil || !ok && !errors.Is(err, ErrAttribute) {
			t.Errorf("port %d of two: %v", port, err)
		}
	}
	if err := checkRC(abi.QPSInit, abi.QPMaskState|abi.QPMaskCurState,
		&abi.QPAttr{QPState: abi.QPSErr, CurQPState: abi.QPSRTS}); !errors.Is(err, ErrTransition) {
		t.Errorf("a wrong current state: %v", err)
	}
}

// TestRetryTime: the retry time that follows from timeout, retry_cnt, rnr_retry and
// min_rnr_timer.
func TestRetryTime(t *testing.T) {
	for _, c := range []struct {
		timeout, retry uint32
		want           string
	}{{14, 7, "2147483648"}, {1, 1, "500000000"}, {18, 0, "4294967296"}, {0, 7, fmt.Sprint(NoLimit)}} {
		a := abi.QPAttr{Timeout: c.timeout, RetryCnt: c.retry}
		if got := fmt.Sprint(int64(RetryTime(&a))); got != c.want {
			t.Errorf("timeout %d, retry_cnt %d: %s ns, expected %s", c.timeout, c.retry, got, c.want)
		}
	}
	for _, c := range []struct {
		retry uint32
		timer uint8
		want  int64
	}{{0, 12, 0}, {1, 12, 640_000}, {6, 1, 60_000}, {2, 0, 2 * 655_360_000}, {1, 31, 491_520_000},
		{7, 1, int64(NoLimit)}} {
		if got := int64(rnrWaitLimit(c.retry, c.timer)); got != c.want {
			t.Errorf("rnr_retry %d, min_rnr_timer %d: %d ns, expected %d", c.retry, c.timer, got, c.want)
		}
	}
}

// TestModifyErrorsHaveNames: states and masks are named as programs name them.
func TestModifyErrorsHaveNames(t *testing.T) {
	for _, c := range []struct {
		from, mask uint32
		a          abi.QPAttr
		want       string
	}{
		{abi.QPSReset, abi.QPMaskState, abi.QPAttr{QPState: abi.QPSRTS}, "from RESET to RTS"},
		{abi.QPSReset, abi.QPMaskState | abi.QPMaskPort | abi.QPMaskAV, abi.QPAttr{QPState: abi.QPSInit},
			"from RESET to INIT the mask lacks IBV_QP_ACCESS_FLAGS|IBV_QP_PKEY_INDEX and may not have IBV_QP_AV"},
		{abi.QPSRTS, abi.QPMaskState | abi.QPMaskQKey | 1<<31, abi.QPAttr{QPState: abi.QPSErr},
			"IBV_QP_QKEY|0x80000000 beside a move to ERR"},
		{abi.QPSInit, abi.QPMaskState | abi.QPMaskCurState, abi.QPAttr{QPState: abi.QPSRTR, CurQPState: 9},
			"the state is INIT, not state 9"},
	} {
		if err := checkRC(c.from, c.mask, &c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, expected %q in it", err, c.want)
		}
	}
}
