package memif

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// queue is the worker's part of a port: the rings of the current link, and the
// private buffers. See package port for the rules of its methods.
type queue struct {
	name     string // the port's
	room     int    // bytes of the largest frame
	counters port.Counters

	// mail is a new link on its way from the control goroutine to the worker.
	// The goroutine that swaps a link out owns it.
	mail atomic.Pointer[link]

	cur     *link
	retired []*link // dead, with packets still held
	heap    heap
	armed   bool
	// retained packets: in private buffers, or in place, of this link or of
	// retired ones. At most retainable.
	retained int
	seen     byte // has the compiler keep the loads of fetchHeads

	epfd   int // what ArmRx gives: wakeFD and the current link's rxWake
	wakeFD int // the control goroutine wakes a sleeping worker
}

var _ port.Queue = (*queue)(nil)

func newQueue(name string, room int) (*queue, error) {
	q := &queue{name: name, room: room, heap: newHeap(room), epfd: -1, wakeFD: -1}
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
	if err = q.watch(q.wakeFD); err != nil {
		q.closeWake()
	}
	return err
}

func (q *queue) watch(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(q.epfd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("memif %s: epoll: %w", q.name, err)
	}
	return nil
}

func (q *queue) closeWake() {
	closeFD(q.epfd)
	closeFD(q.wakeFD)
}

// close gives everything back. The worker has made its last call.
func (q *queue) close() {
	if l := q.mail.Swap(nil); l != nil {
		l.destroy()
	}
	if q.cur != nil {
		q.cur.destroy()
		q.cur = nil
	}
	for _, l := range q.retired {
		l.destroy()
	}
	q.retired = nil
	q.closeWake()
}

// wake makes a sleeping worker look at the mailbox. The eventfd is private, so
// a plain write can't block: the counter never gets near its limit.
func (q *queue) wake() { unix.Write(q.wakeFD, kickByte[:]) }

// enter starts every data method: it takes a new link from the mailbox, leaves
// a dead one, and returns the one to use, or nil.
func (q *queue) enter() *link {
	if q.mail.Load() != nil {
		q.adopt()
	}
	l := q.cur
	if l != nil && l.dead.Load() {
		q.retire()
		return nil
	}
	return l
}

func (q *queue) adopt() {
	l := q.mail.Swap(nil)
	if l == nil {
		return
	}
	q.retire()
	q.cur = l
	if err := q.watch(l.rxWake.fd); err != nil {
		l.fault("gave an interrupt that can't be waited for: %v", err)
		return
	}
	if q.armed {
		l.rx.maskInterrupt(false)
	}
}

// retire stops using the current link; its memory stays until the last packet
// is freed.
func (q *queue) retire() {
	l := q.cur
	if l == nil {
		return
	}
	q.cur = nil
	// The peer may share the open file, so closing alone would leave it watched.
	unix.EpollCtl(q.epfd, unix.EPOLL_CTL_DEL, l.rxWake.fd, nil)
	l.rxWake.close()
	l.txWake.close()
	if l.held == 0 {
		l.unmap()
		return
	}
	q.retired = append(q.retired, l)
}

// old finds a retired link.
func (q *queue) old(epoch uint32) *link {
	for _, l := range q.retired {
		if l.epoch == epoch {
			return l
		}
	}
	return nil
}

// releaseOld takes back a packet of a retired link's memory; ok is false if
// there is no such link.
func (q *queue) releaseOld(epoch uint32) (ok bool) {
	for i, l := range q.retired {
		if l.epoch != epoch {
			continue
		}
		if l.held--; l.held == 0 {
			l.unmap()
			last := len(q.retired) - 1
			q.retired[i], q.retired[last] = q.retired[last], nil
			q.retired = q.retired[:last]
		}
		return true
	}
	return false
}

var errForeignPacket = errors.New("memif: packet is not one the caller received from this port")
