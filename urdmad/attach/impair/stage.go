package impair

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/inject"
	"urdma/urdmad/core/clock"
)

// Stage applies one wire statement.
type Stage struct {
	inject.Wire
	Seen, Hits uint64 // packets that the statement applies to, and packets that it changed
	ways       [2]lane
}

// lane is the state of one direction.
type lane struct {
	rand *rand.Rand
	lost int        // packets of a loss burst still to be lost
	free clock.Time // when the link will have sent earlier packets
	last clock.Time // when the last packet with jitter is due; such packets keep their order
}

// NewStage returns a new stage; seed seeds its random decisions.
func NewStage(w inject.Wire, seed uint64) *Stage {
	s := &Stage{Wire: w}
	for i := range s.ways {
		s.ways[i].rand = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	return s
}

// fate is the decision about a packet.
type fate struct {
	due     clock.Time
	copies  int // 0: it is lost
	corrupt bool
}

// maxQueue is how long a packet waits for a link of limited rate before it is dropped.
const maxQueue = 100 * clock.Millisecond

// corruptAt is the offset at which a frame is corrupted: in the IPv4 header, whose checksum
// detects it.
const corruptAt = port.EtherHeaderLen + 8

// meet updates a packet's fate. Each packet that the stage applies to draws the same amount of
// random numbers, whatever the decisions are.
func (s *Stage) meet(f *fate, p *port.Packet, info *port.Info, out bool, now clock.Time) {
	if out && !s.Out || !out && !s.In || s.Peer.IsValid() && peerOf(p, info, out) != s.Peer {
		return
	}
	l := &s.ways[0]
	if out {
		l = &s.ways[1]
	}
	s.Seen++
	lost, twice, spoilt, behind := l.rand.Float64() < s.Loss, l.rand.Float64() < s.Duplicate, l.rand.Float64() < s.Corrupt,
		l.rand.Float64() < s.Reorder
	jitter := clock.Time(l.rand.Float64() * float64(s.Jitter))
	if lost && l.lost == 0 {
		l.lost = max(s.Burst, 1)
	}
	before := *f
	switch {
	case s.Cut, s.MTU > 0 && ipLength(p, info) > s.MTU, l.lost > 0:
		f.copies = 0
		l.lost = max(0, l.lost-1)
	case spoilt && (info.Datagrams || !isIPv4(p)): // the receiver drops it
		f.copies = 0
	case spoilt:
		f.corrupt = true
	case twice:
		f.copies *= 2
	}
	if f.copies > 0 && s.Rate > 0 {
		l.free = max(l.free, now) + clock.Time(uint64(len(p.Data))*8*uint64(clock.Second)/s.Rate)
		if l.free-now > maxQueue {
			f.copies = 0
			l.free -= clock.Time(uint64(len(p.Data)) * 8 * uint64(clock.Second) / s.Rate)
		} else {
			f.due = max(f.due, l.free)
		}
	}
	f.due += clock.Time(s.Delay)
	if s.Jitter > 0 {
		f.due = max(f.due+jitter, l.last)
		l.last = f.due
	}
	if behind {
		lateBy := s.Late
		if lateBy == 0 {
			lateBy = inject.DefaultLate
		}
		f.due += clock.Time(lateBy)
	}
	if *f != before {
		s.Hits++
	}
}

// etherType returns a frame's EtherType; 0 if it has none.
func etherType(p *port.Packet) uint16 {
	if len(p.Data) < port.EtherHeaderLen+20 {
		return 0
	}
	return binary.BigEndian.Uint16(p.Data[12:])
}

func isIPv4(p *port.Packet) bool { return etherType(p) == 0x0800 }

// peerOf returns the IP address of the other end.
func peerOf(p *port.Packet, info *port.Info, out bool) (a netip.Addr) {
	if info.Datagrams {
		return p.Peer.Addr()
	}
	switch at := p.Data; etherType(p) {
	case 0x0800:
		at = at[port.EtherHeaderLen+12:]
		if out {
			at = at[4:]
		}
		a, _ = netip.AddrFromSlice(at[:4])
	case 0x86dd:
		if len(at) < port.EtherHeaderLen+40 {
			return a
		}
		at = at[port.EtherHeaderLen+8:]
		if out {
			at = at[16:]
		}
		a, _ = netip.AddrFromSlice(at[:16])
	}
	return a
}

// ipLength returns the length of the IP packet.
func ipLength(p *port.Packet, info *port.Info) int {
	switch {
	case !info.Datagrams:
		return len(p.Data) - port.EtherHeaderLen
	case p.Peer.Addr().Is4():
		return len(p.Data) + 28
	}
	return len(p.Data) + 48
}
