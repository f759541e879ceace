package netif_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// mover simulates a neighbour whose Ethernet address changes: frames from the old address get the new one,
// and frames to the old address are lost, as behind a switch that no longer knows it.
type mover struct {
	old, now wire.MAC
	moved    bool
	lost     int
}

func (m *mover) drop(_ uint64, frame []byte) bool {
	dst, src := wire.MAC(frame[:6]), wire.MAC(frame[6:12])
	switch {
	case !m.moved:
	case dst == m.old:
		m.lost++
		return true
	case src == m.old:
		copy(frame[6:], m.now[:])
		var a wire.ARP
		if _, err := a.Parse(frame[wire.EthernetLen:]); err == nil &&
			wire.EtherType(uint16(frame[12])<<8|uint16(frame[13])) == wire.EtherTypeARP {
			a.SenderMAC = m.now
			a.Put(frame[wire.EthernetLen:])
		}
	}
	return false
}

// TestNeighbourMoves: connections survive when a peer gets another Ethernet address without announcing it.
func TestNeighbourMoves(t *testing.T) {
	var m mover
	w := enginetest.New(t, enginetest.Options{Seed: 6, Path: linked.Path{Drop: m.drop}})
	a, b := w.Pair(false, nil)
	m.old, m.now = b.Client.Host.Port.Info().MAC, wire.MAC{2, 0, 0, 0, 0xaa, 0xbb}
	mine, peer := a.Client.Register(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
	a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 5000))
	enginetest.Expect(t, "before", a.Send.Completions(1), []uint64{1}, 0)
	w.Pass(2 * time.Second) // past the time in which changes are ignored
	m.moved = true
	for i := range mine.Bytes {
		mine.Bytes[i] = byte(i * 7)
	}
	began := w.Now()
	a.Post(enginetest.Write(2, peer, 0), mine.SGE(0, 8192))
	enginetest.Expect(t, "after", a.Send.Completions(1), []uint64{2}, 0)
	for i := range peer.Bytes {
		if peer.Bytes[i] != byte(i*7) {
			t.Fatalf("byte %d is %#x", i, peer.Bytes[i])
		}
	}
	if m.lost == 0 {
		t.Error("nothing went to the old address: the move was not tried")
	}
	t.Logf("%d frames went to the old address; done after %v", m.lost, time.Duration(w.Now()-began))
	lost := m.lost
	a.Post(enginetest.Write(3, peer, 0), mine.SGE(0, 5000))
	enginetest.Expect(t, "later", a.Send.Completions(1), []uint64{3}, 0)
	if m.lost != lost {
		t.Errorf("%d frames more went to the old address", m.lost-lost)
	}
}
