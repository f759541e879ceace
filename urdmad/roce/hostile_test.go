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

// damage changes the headers of some packets, whose CRC is right all the same.
func damage(w *enginetest.World, qpn uint32) linked.Path {
	var sums roce.Sums
	return linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP || w.Rand.IntN(3) > 0 {
			return false
		}
		payload := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
		for range 1 + w.Rand.IntN(4) {
			payload[w.Rand.IntN(min(len(payload), roce.MaxHeaderLen))] = byte(w.Rand.Uint32())
		}
		if w.Rand.IntN(2) == 0 { // the right queue pair, at least
			binary.BigEndian.PutUint32(payload[4:], qpn)
		}
		sums.Put(frame[wire.EthernetLen:f.PayloadOff], payload)
		wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
		return false
	}}
}

// TestDamaged: packets of a connection whose headers were changed on their way, with a
// CRC that is right all the same, crash nobody and write nowhere else.
func TestDamaged(t *testing.T) {
	for seed := range uint64(30) {
		w := enginetest.New(t, enginetest.Options{Seed: 100 + seed, RoCE: true})
		n := enginetest.ConnectedPairIn(w, false, 7)
		n.Exchange(3000)
		guard := n.QB.Client.Register(1<<16, 0)
		w.SetPath(damage(w, n.QB.Q.QPN))
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

// TestDamagedDatagrams is TestDamaged of queue pairs of types UD and UC.
func TestDamagedDatagrams(t *testing.T) {
	for name, pair := range map[string]func(*testing.T, bool, enginetest.Options) *enginetest.DatagramPair{"UD": enginetest.NewUDPair, "UC": enginetest.NewUCPair} {
		t.Run(name, func(t *testing.T) {
			u := pair(t, false, enginetest.Options{RoCE: true})
			guard := u.QB.Client.Register(1<<16, 0)
			u.SetPath(damage(u.World, u.QB.Q.QPN))
			posted := 0
			for i := range 500 {
				if posted < 32 {
					u.QB.PostRecv(uint64(i), u.MB.SGE(0, 5000))
					posted++
				}
				w := u.ToB(uint64(i))
				if name == "UC" {
					w = enginetest.Write(uint64(i), u.MB, 0)
					if i%2 == 0 {
						w = enginetest.Send(uint64(i))
					}
				}
				u.QA.Post(w, u.MA.SGE(0, 1000))
				u.Pass(time.Millisecond)
				u.QA.Send.Poll()
				posted -= len(u.QB.Recv.Poll())
			}
			for i, b := range guard.Bytes {
				if b != 0 {
					t.Fatalf("memory without rights was written at %d", i)
				}
			}
		})
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
