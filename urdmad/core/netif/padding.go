package netif

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// This file pads datagrams to the length of those after them (docs/WIRE.md chapter 11). The kernel cuts one send into
// datagrams of equal length, and the last segment of a message is usually shorter than those of the next message, which
// would otherwise need another send.

// paddingPart bounds the padding: one byte in paddingPart bytes of a burst.
const paddingPart = 8

// burst describes the datagrams that are queued for the port.
type burst struct {
	bytes, padding int
	padable        bool // the last datagram may be padded
}

// level pads the last queued datagram to the length of the next one to the same peer, if that is
// worthwhile.
func (t *transmitter) level(peer *port.Peer, length int) {
	if t.used == 0 || !t.burst.padable {
		return
	}
	last, u := &t.p[t.used-1], &t.burst
	size := len(last.Data)
	more := length - size
	if more < wire.MinPadding || length > cap(last.Data) || (u.padding+more)*paddingPart > u.bytes+more ||
		last.Peer != *peer {
		return
	}
	last.Data = last.Data[:length]
	wire.PutPadding(last.Data, size)
	u.bytes += more
	u.padding += more
}

// stretch pads the datagram in frame, which is longer than the path's MTU, to the length from which on the
// kernel fragments it, and returns that length. The length is unchanged if the kernel fragments any datagram.
func (p *Path) stretch(frame []byte, length int) int {
	from := p.n.info.FragmentFrom
	if length+wire.MinPadding > from || from > cap(frame) {
		return length
	}
	wire.PutPadding(frame[:from], length)
	return from
}
