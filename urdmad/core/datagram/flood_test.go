package datagram_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestDatagramsToNowhere: if a program sends to ever more addresses behind a gateway that doesn't answer,
// the number of resolutions in progress stays bounded.
func TestDatagramsToNowhere(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{Gateway: netip.MustParseAddr("10.0.0.77")})
	const addresses = 10_000
	for i := range addresses {
		for u.QA.Ring.SQ.Free() == 0 {
			u.Pass(5 * time.Microsecond)
			u.QA.Send.Poll()
		}
		to := wire.IPv4{11, 0, byte(i >> 8), byte(i)}
		u.QA.Post(enginetest.To(enginetest.Send(1), netip.AddrFrom4(to), 5, enginetest.QKey), u.MA.SGE(0, 8))
	}
	u.Pass(5 * time.Microsecond)
	if n := u.World.A.Engine.Datagrams.Stats.NeighbourWait; n < addresses/2 {
		t.Errorf("%d of %d messages dropped because too many wait", n, addresses)
	}
	u.Pass(3 * time.Second) // nobody answers
	u.QA.Send.Poll()
	u.QB.PostRecv(1, u.MB.SGE(0, 100))
	u.QA.Post(u.ToB(2), u.MA.SGE(0, 8))
	u.QB.Recv.Completions(1)
}
