package mpa_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	dpdk "urdma/dpdk/port"
	"urdma/dpdk/udp"
	"urdma/urdmad/core/engine/enginetest"
)

// polledPort counts the calls that ask it for packets, also before a sleep, and the packets returned.
type polledPort struct {
	dpdk.Port
	queue polledQueue
}

func (p *polledPort) Queue(int) dpdk.Queue { return &p.queue }

type polledQueue struct {
	dpdk.Queue
	polls, got int
}

func (q *polledQueue) Rx(p []dpdk.Packet) int {
	n := q.Queue.Rx(p)
	q.polls++
	q.got += n
	return n
}

func (q *polledQueue) ArmRx() (int, bool) {
	q.polls++
	return q.Queue.ArmRx()
}

// TestQuietSocket: neither a turn nor a sleep asks the socket for datagrams while the kernel reports, together with
// the connections' state, that it has none. An arriving datagram is read in the next turn, and wakes a sleeping
// worker.
func TestQuietSocket(t *testing.T) {
	ports := map[netip.Addr]*polledPort{}
	w := world(t, enginetest.Options{Open: func(a netip.Addr) dpdk.Port { // lo's own address is A's; B is not used
		p, err := udp.Open(udp.Options{Address: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"),
			enginetest.SocketPort+uint16(len(ports)))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		ports[a] = &polledPort{Port: p, queue: polledQueue{Queue: p.Queue(0)}}
		return ports[a]
	}})
	w.A.NewClient().Listen(port, 8)
	e, q := w.A.Engine, &ports[w.A.Addr].queue
	var fds []int
	w.Until("the engine to sleep", time.Minute, func() bool {
		e.Turn(w.Now())
		var ok bool
		if fds, _, ok = e.PrepareSleep(nil); ok {
			e.Woke()
		}
		return ok && len(fds) == 1
	})
	before := q.polls
	const turns = 640
	for range turns {
		e.Turn(w.Now())
		if _, _, ok := e.PrepareSleep(nil); ok {
			e.Woke()
		}
	}
	if n := q.polls - before; n > turns/50 {
		t.Errorf("asked %d times in %d turns", n, turns)
	}
	c, err := net.Dial("udp", netip.AddrPortFrom(w.A.Addr, enginetest.SocketPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 10 {
		got := q.got
		if _, err := c.Write([]byte("no packet of ours")); err != nil {
			t.Fatal(err)
		}
		wake := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}}
		n, err := unix.Poll(wake, 60_000)
		for err == unix.EINTR { // a signal of the Go runtime
			n, err = unix.Poll(wake, 60_000)
		}
		if n != 1 {
			t.Fatalf("a datagram wakes nobody: %v", err)
		}
		if e.Turn(w.Now()); q.got != got+1 {
			t.Errorf("%d datagrams were taken in the turn behind", q.got-got)
		}
		for range 3 {
			e.Turn(w.Now())
		}
	}
}
