package events_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/events"
)

// pair makes a socket, and the client's end of it.
func pair(t *testing.T, q *events.Quota) (*events.Socket, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	return events.NewSocket(fds[0], q), fds[1]
}

// TestClientThatReadsNothing: the waiting events of one client are bounded in bytes over all of its
// sockets; reading events and closing sockets free memory; and events arrive in order.
func TestClientThatReadsNothing(t *testing.T) {
	c, q := &clock.Clock{}, &events.Quota{}
	s := events.NewSender(c)
	msg := make([]byte, 600)
	kept := func(to *events.Socket) int {
		for range 3 * events.MaxBytes / len(msg) {
			s.Send(to, msg)
		}
		return to.Pending()
	}
	first, fd := pair(t, q)
	full := kept(first)
	if bytes := full * len(msg); bytes > events.MaxBytes || bytes < events.MaxBytes/2 {
		t.Fatalf("%d bytes wait", bytes)
	}
	second, _ := pair(t, q)
	if n := kept(second); n != 0 {
		t.Errorf("%d more messages wait on another socket of the client", n)
	}
	other, _ := pair(t, &events.Quota{})
	if n := kept(other); n != full {
		t.Errorf("another client has room for %d messages, expected %d", n, full)
	}
	buf := make([]byte, 1000)
	for first.Pending() > 0 {
		for {
			if n, err := unix.Read(fd, buf); err != nil || n != len(msg) {
				break
			}
		}
		c.Run(c.Now + 2*clock.Millisecond)
	}
	if n := kept(second); n < full-1 {
		t.Errorf("%d messages wait when the first socket was read, expected %d", n, full)
	}
	second.Close()
	if n := kept(first); n < full-1 {
		t.Errorf("%d messages wait when the second socket was closed, expected %d", n, full)
	}
}

// TestRetriesHaveABudget: if many sockets have waited for their clients, a few messages are sent in each millisecond,
// and all sockets get their turn.
func TestRetriesHaveABudget(t *testing.T) {
	const sockets, most = 500, 256
	c := &clock.Clock{}
	s := events.NewSender(c)
	msg := make([]byte, 60)
	var all []*events.Socket
	for range sockets {
		to, fd := pair(t, nil)
		for to.Pending() < 2 {
			s.Send(to, msg)
		}
		all = append(all, to)
		buf := make([]byte, len(msg))
		for {
			if _, err := unix.Read(fd, buf); err != nil {
				break
			}
		}
	}
	waiting := func() (n int) {
		for _, to := range all {
			n += to.Pending()
		}
		return n
	}
	for ticks := 0; waiting() > 0; ticks++ {
		before := waiting()
		c.Run(c.Now + clock.Millisecond)
		c.Now += clock.Millisecond
		if n := before - waiting(); n > most {
			t.Fatalf("%d messages were sent at once, expected %d at most", n, most)
		}
		if ticks > 2*sockets/32 {
			t.Fatalf("%d messages still wait", waiting())
		}
	}
}

// TestUnreadSocketsTakeTurns: some of the unread sockets are tried in each millisecond, so a socket that is read
// again waits only for its turn.
func TestUnreadSocketsTakeTurns(t *testing.T) {
	const sockets, tried = 200, 32
	c := &clock.Clock{}
	s := events.NewSender(c)
	msg := make([]byte, 60)
	var last *events.Socket
	var fd int
	for range sockets {
		for last, fd = pair(t, nil); last.Pending() == 0; c.Now++ { // each in its own turn
			s.Send(last, msg)
		}
	}
	buf := make([]byte, len(msg))
	for err := error(nil); err == nil; {
		_, err = unix.Read(fd, buf)
	}
	ticks := 0
	for ; last.Pending() > 0 && ticks < sockets; ticks++ {
		c.Now += clock.Millisecond
		c.Run(c.Now)
	}
	if want := (sockets + tried - 1) / tried; ticks != want {
		t.Errorf("the last of %d sockets was tried after %d ms, expected %d", sockets, ticks, want)
	}
}

// TestTurnSendsSoMany: if one event goes to thousands of sockets, as for a queue pair that thousands of
// clients have opened, a turn sends a part of the messages at once, and the others follow soon.
func TestTurnSendsSoMany(t *testing.T) {
	const sockets, most = 700, 512
	c := &clock.Clock{}
	s := events.NewSender(c)
	var quota events.Quota
	var all []*events.Socket
	var fds []int
	for range sockets {
		to, fd := pair(t, &quota)
		all, fds = append(all, to), append(fds, fd)
	}
	for n := range byte(2) {
		for _, to := range all {
			s.Send(to, []byte{n})
		}
	}
	waiting := func() (n int) {
		for _, to := range all {
			n += to.Pending()
		}
		return n
	}
	if n := 2*sockets - waiting(); n > most {
		t.Errorf("%d messages were sent at once, expected %d at most", n, most)
	}
	for ticks := 0; waiting() > 0; ticks++ {
		if ticks > 2*sockets/256+1 {
			t.Fatalf("%d messages still wait", waiting())
		}
		before := waiting()
		c.Now += clock.Millisecond
		c.Run(c.Now)
		if n := before - waiting(); n > most {
			t.Fatalf("%d messages were sent at once, expected %d at most", n, most)
		}
	}
	buf := make([]byte, 10)
	for i, fd := range fds {
		for want := range byte(2) {
			if n, err := unix.Read(fd, buf); err != nil || n != 1 || buf[0] != want {
				t.Fatalf("socket %d: read %d of %v, expected %d: %v", i, n, buf[0], want, err)
			}
		}
	}
	for _, to := range all {
		to.Close()
	}
}
