package qp

import (
	"errors"
	"fmt"
	"testing"

	"urdma/verbs/abi"
)

// specified is the table of the InfiniBand specification for reliable
// connections, written out from ibv_modify_qp(3): what each transition requires
// and what else it takes.
var specified = []struct {
	from, to           uint32
	required, optional []uint32
}{
	{abi.QPSReset, abi.QPSInit, []uint32{abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags}, nil},
	{abi.QPSInit, abi.QPSInit, nil, []uint32{abi.QPMaskPKeyIndex, abi.QPMaskPort, abi.QPMaskAccessFlags}},
	{abi.QPSInit, abi.QPSRTR, []uint32{abi.QPMaskAV, abi.QPMaskPathMTU, abi.QPMaskDestQPN, abi.QPMaskRQPSN,
		abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer}, []uint32{abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags}},
	{abi.QPSRTR, abi.QPSRTS, []uint32{abi.QPMaskSQPSN, abi.QPMaskMaxQPRdAtomic, abi.QPMaskRetryCnt, abi.QPMaskRNRRetry, abi.QPMaskTimeout},
		[]uint32{abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer}},
	{abi.QPSRTS, abi.QPSRTS, nil, []uint32{abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer}},
	{abi.QPSRTS, abi.QPSSQD, nil, []uint32{abi.QPMaskEnSQDAsyncNotify}},
	{abi.QPSSQD, abi.QPSRTS, nil, []uint32{abi.QPMaskCurState, abi.QPMaskAccessFlags, abi.QPMaskMinRNRTimer}},
	{abi.QPSSQD, abi.QPSSQD, nil, []uint32{abi.QPMaskPort, abi.QPMaskPKeyIndex, abi.QPMaskAccessFlags, abi.QPMaskAV, abi.QPMaskTimeout,
		abi.QPMaskRetryCnt, abi.QPMaskRNRRetry, abi.QPMaskMaxQPRdAtomic, abi.QPMaskMaxDestRdAtomic, abi.QPMaskMinRNRTimer}},
}

var states = []uint32{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSSQE, abi.QPSErr}

// allowed says what the table has for a transition and a mask without the state.
func allowed(from, to, mask uint32) bool {
	if to == abi.QPSReset || to == abi.QPSErr {
		return mask == 0
	}
	for _, row := range specified {
		if row.from != from || row.to != to {
			continue
		}
		rest := mask
		for _, bit := range row.required {
			if mask&bit == 0 {
				return false
			}
			rest &^= bit
		}
		for _, bit := range row.optional {
			rest &^= bit
		}
		return rest == 0
	}
	return false
}

// TestMasks tries every transition with what it requires, with any one attribute
// more, and with any one less.
func TestMasks(t *testing.T) {
	tried := 0
	for _, from := range states {
		for _, to := range states {
			base := uint32(0)
			for _, row := range specified {
				if row.from == from && row.to == to {
					for _, bit := range row.required {
						base |= bit
					}
				}
			}
			for bit := range 22 {
				for _, mask := range []uint32{base, base ^ 1<<bit} {
					if mask&abi.QPMaskState != 0 {
						continue
					}
					a := abi.QPAttr{QPState: to, CurQPState: from, PortNum: 1, PathMTU: 3}
					err := checkRC(from, mask|abi.QPMaskState, &a)
					if want := allowed(from, to, mask); (err == nil) != want {
						t.Errorf("%d to %d with mask %#x: %v, allowed: %v", from, to, mask, err, want)
					}
					if err != nil && !errors.Is(err, ErrTransition) && !errors.Is(err, ErrAttribute) {
						t.Errorf("%v is of no known kind", err)
					}
					tried++
				}
			}
		}
	}
	t.Log(tried, "moves tried")
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
	good := abi.QPAttr{QPState: abi.QPSRTR, PathMTU: 5, DestQPNum: 1<<24 - 1, MinRNRTimer: 31, MaxDestRdAtomic: 255, AHPortNum: 1}
	const mask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic |
		abi.QPMaskMinRNRTimer
	if err := checkRC(abi.QPSInit, mask, &good); err != nil {
		t.Fatal(err)
	}
	for i, spoil := range []func(*abi.QPAttr){
		func(a *abi.QPAttr) { a.PathMTU = 0 }, func(a *abi.QPAttr) { a.PathMTU = 6 }, func(a *abi.QPAttr) { a.DestQPNum = 1 << 24 },
		func(a *abi.QPAttr) { a.MinRNRTimer = 32 }, func(a *abi.QPAttr) { a.MaxDestRdAtomic = 256 }, func(a *abi.QPAttr) { a.AHPortNum = 2 },
		func(a *abi.QPAttr) { a.IsGlobal, a.SGIDIndex = 1, 1 },
	} {
		a := good
		spoil(&a)
		if err := checkRC(abi.QPSInit, mask, &a); !errors.Is(err, ErrAttribute) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := checkRC(abi.QPSInit, abi.QPMaskState|abi.QPMaskCurState, &abi.QPAttr{QPState: abi.QPSErr, CurQPState: abi.QPSRTS}); !errors.Is(err, ErrTransition) {
		t.Errorf("a wrong current state: %v", err)
	}
}

// TestPatience: how long is tried, of timeout, retry_cnt, rnr_retry and
// min_rnr_timer.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		timeout, retry uint32
		want           string
	}{{14, 7, "2147483648"}, {1, 1, "500000000"}, {18, 0, "4294967296"}, {0, 7, fmt.Sprint(NoLimit)}} {
		a := abi.QPAttr{Timeout: c.timeout, RetryCnt: c.retry}
		if got := fmt.Sprint(int64(Patience(&a))); got != c.want {
			t.Errorf("timeout %d, retry_cnt %d: %s ns, expected %s", c.timeout, c.retry, got, c.want)
		}
	}
	for _, c := range []struct {
		retry uint32
		timer uint8
		want  int64
	}{{0, 12, 0}, {1, 12, 640_000}, {6, 1, 60_000}, {2, 0, 2 * 655_360_000}, {1, 31, 491_520_000}, {7, 1, int64(NoLimit)}} {
		a := abi.QPAttr{RNRRetry: c.retry}
		if got := int64(RNRPatience(&a, c.timer)); got != c.want {
			t.Errorf("rnr_retry %d, min_rnr_timer %d: %d ns, expected %d", c.retry, c.timer, got, c.want)
		}
	}
}
