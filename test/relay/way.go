package relay

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	longest     = 1 << 16 // bytes that the kernel joins
	maxSegments = 64      // datagrams that it splits from one send
	maxSend     = 65507   // bytes of one send
)

// way is one direction.
type way struct {
	from, to     *net.UDPConn
	host, target netip.AddrPort
	draws        draws
	counts       *counters
	waiting      late
	number       uint64 // number of delayed datagrams so far
	in           [longest]byte
	out          []byte // datagrams of one length, except for a shorter last one
	size, parts  int    // of the first datagram in out, and the number of datagrams in it
}

// forward forwards until the socket is closed.
func (w *way) forward() {
	w.out = make([]byte, 0, longest)
	var control [64]byte
	for {
		w.setDeadline()
		n, c, _, src, err := w.from.ReadMsgUDPAddrPort(w.in[:], control[:])
		now := time.Now()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // for example an ICMP error
		case unmapped(src) != w.host:
			w.counts.strangers.Add(1)
		default:
			w.received(now, w.in[:n], joinedSize(control[:c]))
		}
		w.release(now)
		w.flush()
	}
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// setDeadline ends the wait when the next delayed datagram is due.
func (w *way) setDeadline() {
	if len(w.waiting) > 0 {
		_ = w.from.SetReadDeadline(w.waiting[0].due)
	} else if w.number > 0 {
		_ = w.from.SetReadDeadline(time.Time{})
	}
}

// joinedSize returns the size of the datagrams that were joined into a message, 0 if it is a single datagram.
func joinedSize(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_UDP && m.Header.Type == unix.UDP_GRO && len(m.Data) >= 4 {
			return int(binary.NativeEndian.Uint32(m.Data))
		}
	}
	return 0
}

// received splits a message into its datagrams and draws a fate for each.
func (w *way) received(now time.Time, b []byte, size int) {
	joined := size > 0 && size < len(b)
	for first := true; len(b) > 0; first = false {
		d := b
		if joined {
			d = b[:min(size, len(b))]
			w.counts.joined.Add(1)
		}
		b = b[len(d):]
		if w.draws.FirstOnly && !first {
			w.counts.spoiled.Add(1)
		} else {
			w.datagram(now, d)
		}
		w.counts.received.Add(1) // last, because tests then read the other counts
	}
}

func (w *way) datagram(now time.Time, d []byte) {
	copies, after := w.draws.next()
	switch copies {
	case 0:
		w.counts.lost.Add(1)
	case 2:
		w.counts.duplicated.Add(1)
	}
	if after > w.draws.Delay && copies > 0 {
		w.counts.late.Add(1)
	}
	for range copies {
		if after == 0 {
			w.send(d)
			continue
		}
		w.number++
		heap.Push(&w.waiting, waits{now.Add(after), w.number, append([]byte(nil), d...)})
	}
}

// release sends the datagrams that are due.
func (w *way) release(now time.Time) {
	for len(w.waiting) > 0 && !w.waiting[0].due.After(now) {
		w.send(heap.Pop(&w.waiting).(waits).data)
	}
}

// send adds a datagram to the waiting ones, which leave in one send.
func (w *way) send(d []byte) {
	if w.parts > 0 && (len(d) > w.size || w.parts == maxSegments || len(w.out)+len(d) > maxSend) {
		w.flush()
	}
	if w.parts == 0 {
		w.size = len(d)
	}
	w.out = append(w.out, d...)
	w.parts++
	if len(d) < w.size {
		w.flush()
	}
}

// flush sends the waiting datagrams in one send, or one by one if the kernel does not split.
func (w *way) flush() {
	if w.parts == 0 {
		return
	}
	w.counts.forwarded.Add(uint64(w.parts))
	if w.parts == 1 || w.write(w.out, segmentControl(w.size)) != nil {
		for b := w.out; len(b) > 0; {
			n := min(w.size, len(b))
			_ = w.write(b[:n], nil) // as if lost
			b = b[n:]
		}
	}
	w.out, w.parts = w.out[:0], 0
}

// write sends. Errors that concern the datagrams are returned; others mean that the socket was closed.
func (w *way) write(b, control []byte) error {
	_, _, err := w.to.WriteMsgUDPAddrPort(b, control, w.target)
	if err != nil && passes(err) {
		return err
	}
	return nil
}

// segmentControl returns the control message for datagrams of a size (UDP_SEGMENT).
func segmentControl(size int) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(2)))
	binary.NativeEndian.PutUint32(b[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(b[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(size))
	return b
}

// waits is a delayed datagram.
type waits struct {
	due    time.Time
	number uint64 // datagrams that are due at the same time keep their order
	data   []byte
}

// late is a heap of delayed datagrams.
type late []waits

func (l late) Len() int { return len(l) }
func (l late) Less(i, j int) bool {
	if !l[i].due.Equal(l[j].due) {
		return l[i].due.Before(l[j].due)
	}
	return l[i].number < l[j].number
}
func (l late) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *late) Push(x any)   { *l = append(*l, x.(waits)) }
func (l *late) Pop() any {
	old := *l
	last := old[len(old)-1]
	*l = old[:len(old)-1]
	return last
}
