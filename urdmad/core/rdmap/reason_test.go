package rdmap

import (
	"testing"

	"urdma/reason"
	"urdma/wire"
)

// TestCausesHaveReasons: whatever a Terminate may say is explained.
func TestCausesHaveReasons(t *testing.T) {
	codes := append([]wire.TermCode{wire.TermMPALost, wire.TermMPACRC, wire.TermMPAMarker, wire.TermMPARequest, wire.TermMPALocal, wire.TermMPAIRD, wire.TermMPARTR}, wire.TermCodes...)
	for _, c := range codes {
		if _, ok := reason.Find(reason.Number(c)); !ok {
			t.Errorf("%v (%v) has no reason", reason.Number(c), c)
		}
	}
}
