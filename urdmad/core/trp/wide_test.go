package trp_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// creditsOf records the credits sent by each host, by the last byte of its address.
type creditsOf [3]uint32

func (c *creditsOf) see(_ uint64, frame []byte) bool {
	var f wire.Frame
	if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
		return false
	}
	var t wire.TRP
	if _, err := t.Parse(frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]); err == nil && !t.Op.IsControl() {
		c[f.SrcIP[3]] = max(c[f.SrcIP[3]], t.Credits)
	}
	return false
}

// TestWideCredits: hosts whose ports queue more packets than 12 bits of credits can express send credits of
// 20 bits.
func TestWideCredits(t *testing.T) {
	const held = 8192
	seen := new(creditsOf)
	w := enginetest.New(t, enginetest.Options{Seed: 91, ReceiveWindow: held, Path: linked.Path{Drop: seen.see}})
	x, y := w.Pair(false, nil)
	w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(5 * time.Second)
	if seen[1] != held || seen[2] != held {
		t.Errorf("credits of %d and %d were stated, want %d", seen[1], seen[2], held)
	}
}

// TestWindowThatWasAskedFor: a configured window limits credits, too.
func TestWindowThatWasAskedFor(t *testing.T) {
	seen := new(creditsOf)
	w := enginetest.New(t, enginetest.Options{Seed: 92, Window: 64, ReceiveWindow: 10000, Path: linked.Path{Drop: seen.see}})
	x, y := w.Pair(false, nil)
	w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(5 * time.Second)
	if seen[1] != 64 || seen[2] != 64 {
		t.Errorf("credits of %d and %d were stated", seen[1], seen[2])
	}
}
