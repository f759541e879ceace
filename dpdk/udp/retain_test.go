package udp

import "testing"

// TestRetainedFollowsTheBuffer: twice as much as a receive buffer's window needs can be kept, and the default
// number if the buffer has the usual size.
func TestRetainedFollowsTheBuffer(t *testing.T) {
	for _, c := range []struct{ room, window, limit int }{
		{1472, 166, 8192},              // 208 KiB
		{1472, 3276, 8192},             // 4 MiB
		{8972, 496, 7479},              // 4 MiB, packets of 9,000 bytes
		{1472, 13107, 26214},           // 16 MiB
		{1472, 104857, mostRetainable}, // 128 MiB
		{8972, 15887, 29919},           // 128 MiB, packets of 9,000 bytes
		{65507, 4064, 4097},            // 256 MiB, packets of 64 KiB
	} {
		var k retained
		if k.init(c.room, c.window); k.limit != c.limit {
			t.Errorf("%d packets of %d bytes are kept at most with a window of %d, want %d", k.limit, c.room, c.window, c.limit)
		}
	}
}
