package model

import (
	"fmt"
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
		return i.errno(j.sendCommand(c))
	case "receive":
		qp := c.QP
		if p.SRQ {
			qp = 2
		}
		return i.errno(fmt.Sprintf("receive %d %d%s", qp, c.Receive.ID, i.elements(c.Receive.Elements)))
	case "limit":
		return i.errno(fmt.Sprintf("limit %d", c.Number))
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

func (j *Judge) sendCommand(c Call) string {
	own, peer := j.sides[c.Side], j.sides[1-c.Side]
	var b strings.Builder
	fmt.Fprintf(&b, "send %d %d", c.QP, len(c.Sends))
	for _, w := range c.Sends {
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
		fmt.Fprintf(&b, " %d %d %d %d %d %#x %d %d %d %d %d%s", w.ID, opcodes[w.Opcode].request, w.Flags, imm, key, at, compare,
			w.Swap, w.Window, w.Length, w.Access, own.elements(w.Elements))
	}
	return b.String()
}
