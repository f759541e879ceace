package trp_test

import (
	"encoding/binary"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// creditsOf records the credits sent by each host, by the last byte of its address, and removes the
// capability from the handshake's packets of one host.
type creditsOf struct {
	old  byte // host that seems not to know credits of 20 bits; 0: none
	most [3]uint32
}

func (c *creditsOf) see(_ uint64, frame []byte) bool {
	var f wire.Frame
	if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
		return false
	}
	from := f.SrcIP[3]
	var t wire.TRP
	body := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	n, err := t.Parse(body)
	switch {
	case err != nil:
	case !t.Op.IsControl():
		c.most[from] = max(c.most[from], t.Credits)
	case from == c.old && len(body) >= n+wire.ConnectLen+wire.TRPExtensionLen:
		at := n + wire.ConnectLen + int(binary.BigEndian.Uint16(body[n:])) + 16
		body[at+3] &^= byte(wire.CapCredits)
		wire.SetUDPChecksum(frame[:f.PayloadOff+f.PayloadLen])
	}
	return false
}

// TestWideCredits: hosts whose ports queue more packets than 12 bits of credits can express send 20-bit
// credits to peers that read them, and 12-bit credits to others.
func TestWideCredits(t *testing.T) {
	const held, usual = 8192, 1024
	for name, c := range map[string]struct {
		old  byte
		a, b uint32
	}{"both new": {0, held, held}, "requester or listener old": {1, held, usual}, "the other old": {2, usual, held}} {
		t.Run(name, func(t *testing.T) {
			seen := &creditsOf{old: c.old}
			w := enginetest.New(t, enginetest.Options{Seed: 91, ReceiveWindow: held, Path: linked.Path{Drop: seen.see}})
			x, y := w.Pair(false, nil)
			w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(5 * time.Second)
			if seen.most[1] != c.a || seen.most[2] != c.b {
				t.Errorf("credits of %d and %d were stated, want %d and %d", seen.most[1], seen.most[2], c.a, c.b)
			}
		})
	}
}

// TestWindowThatWasAskedFor: a configured window bounds wide credits as well.
func TestWindowThatWasAskedFor(t *testing.T) {
	seen := new(creditsOf)
	w := enginetest.New(t, enginetest.Options{Seed: 92, Window: 64, ReceiveWindow: 10000, Path: linked.Path{Drop: seen.see}})
	x, y := w.Pair(false, nil)
	w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(5 * time.Second)
	if seen.most[1] != 64 || seen.most[2] != 64 {
		t.Errorf("credits of %d and %d were stated", seen.most[1], seen.most[2])
	}
}
