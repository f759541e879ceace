package steer

import "urdma/dpdk/port"

// retained has the packets that are kept for long. Its memory grows with use.
type retained struct {
	room, most int // length of a packet's slot in bytes; greatest number of packets
	slots      [][]byte
	free       []uint32
}

// take copies a packet to a slot.
func (k *retained) take(p *port.Packet) bool {
	if len(k.free) == 0 {
		if len(k.slots) == k.most {
			return false
		}
		k.free = append(k.free, uint32(len(k.slots)))
		k.slots = append(k.slots, make([]byte, k.room))
	}
	i := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	p.Data, p.Ref = k.slots[i][:copy(k.slots[i], p.Data)], refKept|uintptr(i)
	return true
}

func (k *retained) give(p *port.Packet) { k.free = append(k.free, uint32(p.Ref)) }
