package control_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"urdma/verbs/abi"
)

// TestUnreadDescriptors: a client that asks on and on and reads no answer has few
// descriptors under way to it. The kernel counts those of all clients together, and past
// RLIMIT_NOFILE (unix(7), ETOOMANYREFS) nobody gets any.
func TestUnreadDescriptors(t *testing.T) {
	c, ctx, pd := batchClient(t)
	_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second)) // until it waits; a slow machine has less under way
	for next := pd + 1; ; next += 8 {
		var parts [][]byte
		for i := range uint32(8) {
			parts = append(parts, part(abi.CreateChannel, abi.HandleMessage{Handle: ctx}),
				part(abi.DestroyChannel, abi.HandleMessage{Handle: next + i}))
		}
		if _, err := c.conn.Write(batchOf(len(parts), parts...)); err != nil {
			break
		}
	}
	if n := underWay(t, c); n > 600 {
		t.Errorf("%d descriptors are under way to one client", n)
	}
}

// underWay is how many descriptors are in messages that a client has not read.
func underWay(t *testing.T, c *client) (n int) {
	t.Helper()
	raw, err := c.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	_ = raw.Control(func(fd uintptr) { text, err = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd)) })
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`scm_fds:\s*(\d+)`).FindSubmatch(text)
	if m == nil {
		t.Skip("this kernel doesn't say how many descriptors are under way (Linux 5.11 does)")
	}
	n, _ = strconv.Atoi(string(m[1]))
	return n
}
