package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/worker"
)

// put and get correspond to layout.h: the store of the index publishes the slot.
func (r *ring) put(s *slot) {
	head := r.head.Load()
	if head-r.tail.Load() == slots {
		return
	}
	r.slots[head%slots] = *s
	r.head.Store(head + 1)
}

func (r *ring) get(s *slot) bool {
	tail := r.tail.Load()
	if r.head.Load() == tail {
		return false
	}
	*s = r.slots[tail%slots]
	r.tail.Store(tail + 1)
	return true
}

func (r *ring) empty() bool { return r.head.Load() == r.tail.Load() }

// daemon corresponds to daemon.c's struct, for two daemons.
type daemon struct {
	sh        *shared
	me        int
	kicks     [2]int
	ackDefer  clock.Time
	placed    uint32 // last ping placed in the client's memory
	acked     uint32 // last ping acknowledged to the peer
	completed uint32
	owedSince clock.Time
	drain     [8]byte
}

func (d *daemon) client() *program { return &d.sh.program[d.me] }

func (d *daemon) Turn(now clock.Time) (busy bool, deadline clock.Time) {
	received, forwarded := d.receive(now), d.forward()
	if d.placed == d.acked {
		return received || forwarded, clock.Never
	}
	if due := d.owedSince + d.ackDefer; now < due {
		return received || forwarded, due
	}
	d.send(&slot{kind: kindAck})
	return true, clock.Never
}

func (d *daemon) receive(now clock.Time) (busy bool) {
	var s slot
	for d.sh.wire[1-d.me].get(&s) {
		busy = true
		if s.kind == kindData {
			d.place(&s, now)
		}
		for d.completed < s.ack {
			d.completed++
			d.client().complete.put(&slot{kind: kindAck, sequence: d.completed})
		}
	}
	return busy
}

func (d *daemon) place(s *slot, now clock.Time) {
	if s.solicits != 0 {
		d.client().complete.put(&slot{kind: kindData, sequence: s.sequence})
	}
	d.client().landed.Store(s.sequence)
	if d.placed == d.acked {
		d.owedSince = now
	}
	d.placed = s.sequence
}

func (d *daemon) forward() (busy bool) {
	var s slot
	for d.client().post.get(&s) {
		busy = true
		d.send(&s)
	}
	return busy
}

func (d *daemon) send(s *slot) {
	s.ack = d.placed
	d.acked = d.placed
	d.sh.wire[d.me].put(s)
	peer := &d.sh.door[1-d.me]
	if peer.sleeping.Load() != 0 && peer.sleeping.Swap(0) != 0 {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(d.kicks[1-d.me], one[:])
		peer.kicks.Add(1)
	}
}

func (d *daemon) PrepareSleep(fds []int) (out []int, timed, ok bool) {
	d.sh.door[d.me].sleeping.Store(1)
	if !d.client().post.empty() || !d.sh.wire[1-d.me].empty() {
		d.sh.door[d.me].sleeping.Store(0)
		return fds, false, false
	}
	return append(fds, d.kicks[d.me]), false, true
}

func (d *daemon) Woke() {
	d.sh.door[d.me].sleeping.Store(0)
	_, _ = unix.Read(d.kicks[d.me], d.drain[:]) // non-blocking
}

var _ worker.Loop = (*daemon)(nil)
