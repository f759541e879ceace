package datagram_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestManagementDatagrams: without such a Q_Key nothing is sent to queue pair 1, which accepts management datagrams,
// and no program receives what arrives there.
func TestManagementDatagrams(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	for _, qkey := range []uint32{enginetest.QKey, wire.GeneralQKey} { // the second means the queue pair's own
		u.Send(enginetest.To(u.ToB(1), u.World.B.Addr, uint32(wire.GeneralQPN), qkey), 256)
	}
	u.Pass(time.Millisecond)
	if s := u.World.A.Engine.Datagrams.Stats; s.NoQueuePair != 2 || s.Sent != 0 {
		t.Errorf("without a Q_Key of management: %+v", s)
	}
	q := u.QA.Client.NewDatagramQP(wire.GeneralQKey)
	q.Post(enginetest.To(enginetest.Send(1), u.World.B.Addr, uint32(wire.GeneralQPN), wire.GeneralQKey), u.MA.SGE(0, 256))
	q.Send.Completions(1)
	u.Pass(time.Millisecond)
	if s := u.Stats(); s.NoQueuePair != 1 {
		t.Errorf("with it: %+v", s)
	}
}
