package roce_test

import (
	"encoding/binary"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/engine/enginetest"
	"urdma/wire"
	"urdma/wire/roce"
)

// TestDamaged: packets of a connection whose headers were changed on their way, with a
// CRC that is right all the same, crash nobody and write nowhere else.
func TestDamaged(t *testing.T) {
	for seed := range uint64(30) {
		w := enginetest.New(t, enginetest.Options{Seed: 100 + seed, RoCE: true})
		n := enginetest.ConnectedPairIn(w, false, 7)
		n.Exchange(3000)
		guard := n.QB.Client.Register(1<<16, 0)
		var sums roce.Sums
		w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
			var f wire.Frame
			if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP || w.Rand.IntN(3) > 0 {
				return false
			}
			payload := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
			for range 1 + w.Rand.IntN(4) {
				payload[w.Rand.IntN(min(len(payload), roce.MaxHeaderLen))] = byte(w.Rand.Uint32())
			}
			if w.Rand.IntN(2) == 0 { // the right queue pair, at least
				binary.BigEndian.PutUint32(payload[4:], n.QB.Q.QPN)
			}
			sums.Put(frame[wire.EthernetLen:f.PayloadOff], payload)
			wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
			return false
		}})
		for i := range 20 {
			n.QB.PostRecv(uint64(i), n.MB.SGE(0, 5000))
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 3000))
			n.QA.Post(enginetest.Read(2, n.MB, 0), n.MA.SGE(1<<19, 3000))
			n.QA.Post(enginetest.FetchAdd(3, n.MB, 0, 1), n.MA.SGE(1<<19, 8))
			w.Pass(5 * time.Millisecond)
			n.QA.Send.Poll()
			n.QB.Recv.Poll()
		}
		for i, b := range guard.Bytes {
			if b != 0 {
				t.Fatalf("seed %d: memory without rights was written at %d", seed, i)
			}
		}
	}
}

// TestWrongCRC: a packet with a wrong CRC is dropped and counted, and sent again.
func TestWrongCRC(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true})
	n := enginetest.ConnectedPairIn(w, false, 7)
	spoilt := 0
	w.SetPath(linked.Path{Drop: func(i uint64, frame []byte) bool {
		var f wire.Frame
		if i%5 == 0 && f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP {
			frame[f.PayloadOff+f.PayloadLen-1] ^= 1
			wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
			spoilt++
		}
		return false
	}})
	n.Exchange(20_000)
	if got := w.A.Engine.RoCE.Stats.WrongICRC + w.B.Engine.RoCE.Stats.WrongICRC; spoilt == 0 || got != uint64(spoilt) {
		t.Errorf("%d wrong CRCs counted, %d were sent", got, spoilt)
	}
}
