package netif

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// This file makes datagrams longer: as long as the ones behind them, to peers that take
// that (docs/WIRE.md chapter 11): the kernel cuts one send into datagrams of equal
// length, and a message's last segment is most often shorter than those of the
// next message, which would have to leave in another send.

// paddingPart bounds what is sent for nothing: one byte in so many of a burst.
const paddingPart = 8

// burst is what the datagrams that wait for the port come to.
type burst struct {
	bytes, padding int
	padable        bool // the last one's peer takes padding
}

// level pads the datagram queued last to the length of the one that follows it to
// the same peer, where that is worth it.
func (t *transmitter) level(peer *port.Peer, length int) {
	if t.used == 0 || !t.burst.padable {
		return
	}
	last, u := &t.p[t.used-1], &t.burst
	size := len(last.Data)
	more := length - size
	if more < wire.MinPadding || length > cap(last.Data) || (u.padding+more)*paddingPart > u.bytes+more || last.Peer != *peer {
		return
	}
	last.Data = last.Data[:length]
	wire.PutPadding(last.Data, size)
	u.bytes += more
	u.padding += more
}

// stretch pads the datagram in frame, which is longer than the path takes, to the length
// from which on the kernel fragments it, and returns its length: that of a kernel that
// fragments any, or of a peer that takes no padding, which hears nothing of it then,
// stays.
func (p *Path) stretch(frame []byte, length int) int {
	from := p.n.info.FragmentFrom
	if !p.takes || length+wire.MinPadding > from || from > cap(frame) {
		return length
	}
	wire.PutPadding(frame[:from], length)
	return from
}
