package words

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"urdma/reason"
	"urdma/wire"
)

// TestTable: Find needs the order, and users need each text.
func TestTable(t *testing.T) {
	if !slices.IsSortedFunc(table, func(a, b Reason) int { return int(a.Number) - int(b.Number) }) {
		t.Error("the table is not sorted by number")
	}
	for i, r := range table {
		if i > 0 && table[i-1].Number == r.Number {
			t.Errorf("%v is there twice", r.Number)
		}
		if found, ok := Find(r.Number); !ok || found != r {
			t.Errorf("Find(%v) is %+v, %v", r.Number, found, ok)
		}
		if r.What == "" || r.See == "" {
			t.Errorf("%v lacks what happened, or where it is written", r.Number)
		}
		for _, text := range []string{r.What, r.Means, r.Change} {
			if strings.HasSuffix(text, ".") || strings.TrimSpace(text) != text {
				t.Errorf("%v: %q ends in a stop or a space", r.Number, text)
			}
		}
	}
}

// TestErrno: every errno has a reason, also without a row in the table.
func TestErrno(t *testing.T) {
	for e := syscall.Errno(1); e < 140; e++ {
		n := reason.OfErrno(e)
		r, ok := Find(n)
		if !ok || n.Errno() != e || r.Number != n || !strings.Contains(r.What, "a request was refused") {
			t.Errorf("errno %d: %+v, %v", e, r, ok)
		}
	}
	// frequent errors in first programs
	for _, e := range []syscall.Errno{syscall.ENODEV, syscall.ENETUNREACH, syscall.EDQUOT} {
		if r, _ := Find(reason.OfErrno(e)); r.Means == "" || r.Change == "" {
			t.Errorf("errno %d has no advice: %+v", e, r)
		}
	}
	if reason.Rejected.Errno() != 0 {
		t.Error("a connection that was rejected has an errno")
	}
	if _, ok := Find(0x0412 + 0x4000); ok {
		t.Error("a number out of every range has a reason")
	}
}

// TestCausesHaveReasons: whatever a Terminate may say is explained.
func TestCausesHaveReasons(t *testing.T) {
	codes := append([]wire.TermCode{wire.TermMPALost, wire.TermMPACRC, wire.TermMPAMarker, wire.TermMPARequest,
		wire.TermMPALocal, wire.TermMPAIRD, wire.TermMPARTR}, wire.TermCodes...)
	for _, c := range codes {
		if _, ok := Find(reason.Number(c)); !ok {
			t.Errorf("%v (%v) has no reason", reason.Number(c), c)
		}
	}
}
