package wire

import (
	"slices"
	"testing"
)

// TestNamedTermCodes: TRP uses the Terminate codes of RDMAP and DDP.
func TestNamedTermCodes(t *testing.T) {
	if !slices.Contains(TermCodes, TermUntaggedNoBuffer) || !slices.Contains(TermCodes, TermOperationUnspecified) ||
		slices.Contains(TermCodes, TermMPALost) {
		t.Errorf("%v", TermCodes)
	}
}
