package watch

import (
	"strings"
	"testing"
)

// TestExplainToTheTarget: a reason addresses the end that asks, so the end that refused gets another text.
func TestExplainToTheTarget(t *testing.T) {
	for text, want := range map[string]string{
		"RDMA Write of 64 bytes":    "queue pair 0e8176: 0x1100, the peer has no memory that the rkey of an RDMA Write names\n  RDMA Write of 64 bytes\n",
		refusedPeer + "a request x": "queue pair 0e8176 refused its peer, which is told: 0x1100, the peer has no memory that the rkey of an RDMA Write names\n  a request x\n",
	} {
		if got := paragraph(0x1100, 0x0e8176, text); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
}
