package tap

import (
	"urdma/urdmad/core/mpa"
	"urdma/wire"
)

// This file synthesizes the frames of connections over TCP. The kernel's own frames are not
// visible; they split streams elsewhere and may be retransmissions. Sequence numbers start at 0
// when a tap is added.

// Stream implements mpa.Observer.
func (v *Tap) Stream(c *mpa.Conn, out bool, seq, ack uint32, parts [][]byte, n int) {
	all := v.madeUp.stream[:0]
	for _, b := range parts {
		b = b[:min(n, len(b))]
		all, n = append(all, b...), n-len(b)
	}
	v.madeUp.stream = all
	room := v.e.Interface(c.Dev).MTU() - wire.IPv6Len - wire.TCPLen
	for len(all) > 0 {
		piece := all[:min(room, len(all))]
		v.showTCP(c, out, seq, ack, wire.TCPAck|wire.TCPPsh, piece)
		seq, all = seq+uint32(len(piece)), all[len(piece):]
	}
}

// StreamEnd implements mpa.Observer.
func (v *Tap) StreamEnd(c *mpa.Conn, out bool, seq, ack uint32) {
	v.showTCP(c, out, seq, ack, wire.TCPAck|wire.TCPFin, nil)
}

func (v *Tap) showTCP(c *mpa.Conn, out bool, seq, ack uint32, flags uint8, payload []byte) {
	n := v.e.Interface(c.Dev)
	t := wire.TCP{SrcMAC: n.MAC(), Src: c.Local, Dst: c.Peer, Seq: seq, Ack: ack, Flags: flags}
	if !out {
		t.SrcMAC, t.DstMAC, t.Src, t.Dst = wire.MAC{}, n.MAC(), c.Peer, c.Local
	}
	v.madeUp.frame = t.Append(v.madeUp.frame[:0], payload)
	s := Sight{Dev: c.Dev, Out: out, Our: c.Local, Peer: c.Peer, Frame: v.madeUp.frame}
	if c.Owner != nil { // else its request has only just arrived
		s.Conn = &c.Connection
	}
	v.show(s, "")
}
