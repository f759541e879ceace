package netif

import "testing"

// TestKeepableFollowsTheBuffer: twice as much as a receive buffer's window needs can be kept, and the default
// number if the buffer has the usual size.
func TestKeepableFollowsTheBuffer(t *testing.T) {
	for _, c := range []struct{ size, window, limit int }{
		{1500, 0, 8192},              // a port of frames
		{1500, 166, 8192},            // 208 KiB
		{1500, 3276, 8192},           // 4 MiB
		{9000, 496, 8192},            // 4 MiB, packets of 9,000 bytes
		{1500, 13107, 26214},         // 16 MiB
		{1500, 104857, mostKeepable}, // 128 MiB
		{9000, 15887, 29826},         // 128 MiB, packets of 9,000 bytes
		{65535, 4064, 4096},          // 256 MiB, packets of 64 KiB
	} {
		if got := keepableOf(c.size, c.window); got != c.limit {
			t.Errorf("%d datagrams of %d bytes can be kept with a window of %d, want %d", got, c.size, c.window, c.limit)
		}
	}
}
