package fabric

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"slices"
	"testing"
)

// mutationStride makes a short test try only each nth mutation: a prime number, so that each kind has its turn.
const mutationStride = 31

// requests are MADs of every kind that a program can send.
func requests() []Packet {
	to := func(lid uint16, list ...MAD) (out []Packet) {
		for _, m := range list {
			out = append(out, Packet{DLID: lid, MAD: m})
		}
		return out
	}
	portInfo := smp(MethodSet, attrPortInfo, 1)
	set := newPortInfo(channelAdapter, 1)
	copy(portInfo[smpData:], set[:])
	binary.BigEndian.PutUint16(portInfo[smpData+offLID:], 0x20)
	portInfo[smpData+offState] = stateActive
	switchInfo := smp(MethodSet, attrSwitchInfo, 0)
	copy(switchInfo[smpData:], newSwitchInfo())
	returning := smp(MethodGet, attrNodeInfo, 0).along(1, 2)
	returning[4] |= directionBit >> 8
	return slices.Concat(
		to(permissiveLID, smp(MethodGet, attrNodeInfo, 0).along(), smp(MethodGet, attrPortInfo, 2).along(1, 2), returning),
		to(1, smp(MethodSet, attrLFT, 1), smp(MethodSet, attrMFT, 1), switchInfo, perf(MethodSet, attrPortCounters, allPorts,
			0xffff),
			admin(MethodGetTable, attrPathRecord, 1<<pathSLID), admin(MethodGet, attrNodeRecord, 1),
			smp(MethodGet, attrSMInfo, 0)),
		to(0x20, portInfo, smp(MethodSet, attrPKeyTable, 0), perf(MethodGet, attrExtended, 1, 0)))
}

// mutations are changes to each field of a MAD, to its length, and to its destination.
func mutations(p Packet) (list []Packet) {
	add := func(change func(m MAD)) {
		m := slices.Clone(p.MAD)
		change(m)
		list = append(list, Packet{DLID: p.DLID, MAD: m})
	}
	for _, at := range []int{0, 1, 2, 3, 4, 5, offHopPointer, offHops, 16, 17, 22, 23, 29, smpData + offState,
		smpData + offPhysical, smpData + offProtectLMC, smpData + offMTUSMSL, smpData + offOperVLs, initialPath + 1,
		initialPath + 2, returnPath + 1, returnPath + 2} {
		for v := range 256 {
			if v < 0x22 || v&(v-1) == 0 || v > 0x7f && v < 0x98 || v > 0xfd {
				add(func(m MAD) { m[at] = byte(v) })
			}
		}
	}
	for at := 4; at < Size; at += 2 {
		was := binary.BigEndian.Uint16(p.MAD[at:])
		for _, v := range []uint16{0, 1, was + 1, was - 1, 0x10, 0x20, 0x77, maxLID, maxLID + 1, 1 << 15, math.MaxUint16} {
			add(func(m MAD) { binary.BigEndian.PutUint16(m[at:], v) })
		}
	}
	for _, lid := range []uint16{0, 1, 0x10, 0x20, 0x30, 0x77, maxLID, maxLID + 1, permissiveLID} {
		list = append(list, Packet{DLID: lid, MAD: p.MAD})
	}
	for _, n := range []int{0, 1, 4, 24, 63, 64, 255} {
		list = append(list, Packet{DLID: p.DLID, MAD: p.MAD[:n]})
	}
	return append(list, Packet{DLID: p.DLID, MAD: append(slices.Clone(p.MAD), make([]byte, 5000)...)}, p)
}

// state is everything that requests can set.
func (s *Subnet) state() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, n := range s.nodes {
		for _, b := range [][]byte{n.info, n.lft, n.mft} {
			_, _ = h.Write(b)
		}
		for _, e := range n.ports {
			if e != nil {
				maphash.WriteComparable(&h, e.info)
				maphash.WriteComparable(&h, e.pkeys)
				maphash.WriteComparable(&h, e.off)
				maphash.WriteComparable(&h, e.reregistered)
				maphash.WriteComparable(&h, e.cleared)
			}
		}
	}
	return h.Sum64()
}

var seed = maphash.MakeSeed()

// subnets are the states of the subnet in which requests are sent.
var subnets = map[string]func(s *Subnet, ports []Port){
	"as ever":         func(*Subnet, []Port) {},
	"another manager": func(s *Subnet, _ []Port) { s.Claim(1) },
	"a link is down":  func(s *Subnet, ports []Port) { ports[1].Up = false; s.Update(ports) },
}

// TestMutations changes each field of each kind of MAD. Only a Set that succeeds may change anything. Each MAD that
// returns to the program must be the answer to its own, both ends of a link must agree whether it is up, and the
// program's port must still answer.
func TestMutations(t *testing.T) {
	tries := 0
	for name, prepare := range subnets {
		for i, p := range requests() {
			for k, changed := range mutations(p) {
				if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 {
					continue
				}
				s, ports := three(t)
				prepare(s, ports)
				if why := s.mutate(ports, changed); why != "" {
					t.Errorf("%s, %d/%d to LID %#x: %s\n%x", name, i, k, changed.DLID, why, changed.MAD[:min(len(changed.MAD), 130)])
				}
			}
		}
	}
	t.Logf("%d changes", tries)
}

// mutate sends a MAD from device 0, and returns the error found.
func (s *Subnet) mutate(ports []Port, p Packet) string {
	before, sets := s.state(), len(p.MAD) >= Size && p.MAD.Method() == MethodSet
	sent := slices.Clone(p.MAD)
	for _, d := range s.Send(0, p) {
		m := d.MAD
		if d.Device < 0 || d.Device >= len(ports) || len(m) < adminData {
			return fmt.Sprintf("%d bytes for device %d", len(m), d.Device)
		}
		if !p.MAD.Response() && m.Response() {
			misled := p.MAD.Method() == MethodSet || p.MAD.directed() && p.MAD.drSLID() != permissiveLID // to another node's LID
			if d.Device != 0 && !misled || m.Class() != p.MAD.Class() || m.Transaction() != p.MAD.Transaction() ||
				m.attribute() != p.MAD.attribute() {
				return fmt.Sprintf("device %d has an answer: %x", d.Device, m[:24])
			}
			st := binary.BigEndian.Uint16(m[4:]) &^ directionBit
			sets = sets && st == 0
		}
	}
	switch {
	case !slices.Equal(sent, p.MAD):
		return "the program's own copy has changed"
	case !sets && s.state() != before:
		return "what was refused or is no Set has changed something"
	}
	s.Take()
	s.Update(ports)
	for _, n := range s.nodes {
		for _, e := range n.ports {
			if e != nil && e.peer != nil && e.joined() != e.peer.joined() {
				return "a link is up at one end"
			}
		}
	}
	if got := s.Send(0, Packet{DLID: permissiveLID, MAD: smp(MethodGet, attrNodeInfo, 0).along()}); len(got) != 1 ||
		got[0].Device != 0 || got[0].MAD[5] != 0 {
		return fmt.Sprintf("the program's own port answers no more: %v", got)
	}
	return ""
}
