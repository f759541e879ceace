package model

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// call executes a call.
func (j *Judge) call(p *Program, s *state, c Call) (syscall.Errno, error) {
	i := j.sides[c.Side]
	if s.leftOut(&c) {
		return 0, nil
	}
	switch c.What {
	case "connect":
		return j.connect(p, s, c.QP)
	case "state":
		return i.errno(j.stateCommand(p, c.Side, c.QP, c.Number, s.pairs[c.Side][c.QP].state > stateRTR))
	case "send":
		return j.send(p, c)
	case "receive":
		qp := c.QP
		if p.SRQ {
			qp = 2 + p.queue(c.QP)
		}
		return i.errno(fmt.Sprintf("receive %d %d%s", qp, c.Receive.ID, i.elements(c.Receive.Elements)))
	case "limit":
		return i.errno(fmt.Sprintf("limit %d %d", p.queue(c.QP), c.Number))
	case "deregister":
		return i.errno(fmt.Sprintf("deregister %d", c.Number))
	case "destroy":
		return i.errno(fmt.Sprintf("destroy %d", c.QP))
	}
	return i.errno(fmt.Sprintf("destroy_used %d", c.Number))
}

// connect moves both sides through all states.
func (j *Judge) connect(p *Program, s *state, qp int) (syscall.Errno, error) {
	for _, to := range []int{stateReset, stateInit, stateRTR, stateRTS} {
		for side, i := range j.sides {
			if s.pairs[side][qp].destroyed {
				continue
			}
			if errno, err := i.errno(j.stateCommand(p, side, qp, to, false)); err != nil || errno != 0 {
				return errno, err
			}
		}
	}
	return 0, nil
}

func (j *Judge) stateCommand(p *Program, side, qp, to int, short bool) string {
	peer := j.sides[1-side]
	return fmt.Sprintf("state %d %d %d %d %d %d %#x %#x %d %d", qp, to, bit(short), peer.qpn[qp], peer.lid, peer.global, peer.gid[0],
		peer.gid[1], p.Access, p.RNRRetry)
}

func (i *interpreter) elements(elements []Element) string {
	var b strings.Builder
	fmt.Fprint(&b, " ", len(elements))
	for _, e := range elements {
		fmt.Fprintf(&b, " %#x %d %d", i.base+uint64(e.Offset), e.Length, i.keys[e.Key.Of][0])
	}
	return b.String()
}

// send posts requests up to the first that is refused. Those in front of a window of type 1 and behind it are
// lists of their own, because ibv_bind_mw posts it.
func (j *Judge) send(p *Program, c Call) (syscall.Errno, error) {
	i := j.sides[c.Side]
	for len(c.Sends) > 0 {
		n := slices.IndexFunc(c.Sends, func(w Send) bool { return p.Type1 && w.Opcode == "BIND" })
		if n == 0 {
			if errno, err := i.bind(c.QP, &c.Sends[0]); err != nil || errno != 0 {
				return errno, err
			}
			c.Sends = c.Sends[1:]
			continue
		}
		if n < 0 {
			n = len(c.Sends)
		}
		if errno, err := i.errno(j.sendCommand(p, c, c.Sends[:n])); err != nil || errno != 0 {
			return errno, err
		}
		c.Sends = c.Sends[n:]
	}
	return 0, nil
}

// bind binds a window of type 1, and remembers the key that it gets.
func (i *interpreter) bind(qp int, w *Send) (syscall.Errno, error) {
	errno, err := i.errno(fmt.Sprintf("bind %d %d %d %d %d %#x %d %d", qp, w.ID, w.Flags, w.Window, w.Region,
		i.base+uint64(w.At), w.Length, w.Access))
	if err != nil || errno != 0 {
		return errno, err
	}
	key, err := i.errno(fmt.Sprintf("window_key %d", w.Window))
	i.bound[w.Key] = uint32(key)
	return 0, err
}

func (j *Judge) sendCommand(p *Program, c Call, sends []Send) string {
	own, peer := j.sides[c.Side], j.sides[1-c.Side]
	var b strings.Builder
	fmt.Fprintf(&b, "send %d %d", c.QP, len(sends))
	for _, w := range sends {
		at, compare, key, imm := peer.base+uint64(w.At), w.Compare, peer.rkey(w.Key), uint32(w.Imm)
		switch w.Opcode {
		case "BIND":
			at, compare, key = own.base+uint64(w.At), uint64(w.Region), own.rkey(w.Key)
		case "INVALIDATE":
			imm = own.rkey(w.Key)
		case "SEND_INV":
			imm = key
		}
		if own.peer != nil {
			at, key = 0xfffff0, qkey+uint32(w.QKey)
			if w.To != nowhere {
				at = uint64(peer.qpn[w.To])
			}
		}
		window := w.Window
		if p.XRC {
			window = int(append(peer.queues[:], 0xfffff0)[w.To])
		}
		fmt.Fprintf(&b, " %d %d %d %d %d %#x %d %d %d %d %d%s", w.ID, opcodes[w.Opcode].request, w.Flags, imm, key, at, compare,
			w.Swap, window, w.Length, w.Access, own.elements(w.Elements))
	}
	return b.String()
}
