package memif

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// queue is a worker's part of a port: its share of the current link, and private buffers. See package port
// for the rules of its methods.
type queue struct {
	name     string // of the port
	room     int    // bytes of the largest frame
	choose   func(frame []byte, rings int) int
	counters port.Counters

	// mail is a new link's share on its way from the control goroutine to the worker. The goroutine that
	// swaps it out owns it.
	mail atomic.Pointer[share]

	cur     *share
	retired []*share // shares of dead links with packets still held
	heap    heap
	armed   bool
	// toWake has a bit for each ring that was filled, or found full, since Flush.
	toWake uint
	// refused: another queue was filling the ring that the next frame needs.
	refused bool
	seen    byte // prevents the compiler from removing the loads of fetchHeads

	epfd   int // the fd that ArmRx returns; contains wakeFD and the current share's rxWake
	events [2]unix.EpollEvent
	wakeFD int // written by the control goroutine to wake a sleeping worker
}

var _ port.Queue = (*queue)(nil)

func newQueue(o *Options) (*queue, error) {
	room := o.MTU + port.EtherHeaderLen
	q := &queue{name: o.Name, room: room, choose: o.Ring, heap: newHeap(room), epfd: -1, wakeFD: -1}
	return q, q.openWake()
}

func (q *queue) openWake() (err error) {
	if q.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("memif %s: epoll: %w", q.name, err)
	}
	if q.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		q.closeWake()
		return fmt.Errorf("memif %s: eventfd: %w", q.name, err)
	}
	if err = q.watch(q.wakeFD, unix.EPOLLIN); err != nil {
		q.closeWake()
	}
	return err
}

func (q *queue) watch(fd int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(q.epfd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("memif %s: epoll: %w", q.name, err)
	}
	return nil
}

func (q *queue) closeWake() {
	closeFD(q.epfd)
	closeFD(q.wakeFD)
}

// close releases everything. The worker must not use the queue any more.
func (q *queue) close() {
	if s := q.mail.Swap(nil); s != nil {
		s.destroy()
	}
	if q.cur != nil {
		q.cur.destroy()
		q.cur = nil
	}
	for _, s := range q.retired {
		s.forget()
	}
	q.retired = nil
	q.closeWake()
}

// wake makes a sleeping worker look at the mailbox. The eventfd is private and its counter never gets near
// the limit, so a plain write can't block.
func (q *queue) wake() { unix.Write(q.wakeFD, kickByte[:]) }

// enter begins every data method: it takes a new link from the mailbox, leaves a dead one, and returns the
// share to use, or nil.
func (q *queue) enter() *share {
	if q.mail.Load() != nil {
		q.adopt()
	}
	s := q.cur
	if s != nil && s.dead.Load() {
		q.retire()
		return nil
	}
	return s
}

func (q *queue) adopt() {
	s := q.mail.Swap(nil)
	if s == nil {
		return
	}
	q.retire()
	q.cur = s
	if !s.reads() {
		return
	}
	if err := q.watch(s.rxWake.fd, unix.EPOLLIN|unix.EPOLLET); err != nil {
		s.fault("gave an interrupt that can't be waited for: %v", err)
		return
	}
	if q.armed {
		s.rx.maskInterrupt(false)
	}
}

// retire stops using the current link; its memory stays mapped until the last packet is freed.
func (q *queue) retire() {
	s := q.cur
	if s == nil {
		return
	}
	q.cur, q.toWake, q.refused = nil, 0, false
	if s.reads() {
		// The peer may share the open file, so closing our fd would not remove it from the epoll set.
		unix.EpollCtl(q.epfd, unix.EPOLL_CTL_DEL, s.rxWake.fd, nil)
	}
	s.leave()
	if s.held == 0 {
		s.forget()
		return
	}
	q.retired = append(q.retired, s)
}

// releaseOld frees a packet in an earlier link's memory.
func (q *queue) releaseOld(epoch uint32) {
	for i, s := range q.retired {
		if s.epoch != epoch {
			continue
		}
		if s.held--; s.held == 0 {
			s.forget()
			last := len(q.retired) - 1
			q.retired[i], q.retired[last] = q.retired[last], nil
			q.retired = q.retired[:last]
		}
		return
	}
}
