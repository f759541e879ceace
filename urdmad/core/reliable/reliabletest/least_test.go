package reliabletest

import (
	"testing"

	"urdma/urdmad/core/reliable"
)

// TestOwnQueueIsNoPath: a stream that always keeps some queue does not count the queue as part of the path's
// round trip, which would make the queue grow with each measurement.
func TestOwnQueueIsNoPath(t *testing.T) {
	cfg := reliable.Config{Window: 1024, RecvWindow: 1024, PeerWindow: 1024, TargetDelay: 2 * ms}
	s := newStreamOf(1, Link{Rate: 0.8e9, Size: 1500, Delay: 2500 * us}, cfg)
	s.run(t, 5500*ms)
	goodput := s.run(t, reliable.Second)
	st := s.stats()
	t.Logf("goodput %.3f, round trip %d µs, least %d µs", goodput, st.SRTT/us, st.MinRTT/us)
	if st.MinRTT > 5050*us || goodput < 0.98 {
		t.Errorf("goodput %.3f, and the least round trip is %d µs where the path takes 5,015", goodput, st.MinRTT/us)
	}
}

// TestOthersQueueIsNoPath: streams that arrive at a queue kept by others measure the path's own round trip, and
// the others keep their measurement.
func TestOthersQueueIsNoPath(t *testing.T) {
	all := crowd(3, Link{Rate: 0.3e9, Size: 1500, Delay: 500 * us, Queue: 128 << 10}, 7)
	const end = 13 * reliable.Second
	for i, s := range all[1:] {
		s.Peers[0].Queued = 0
		at := reliable.Time(i+1) * reliable.Second
		s.At(at, func() { s.Peers[0].Queued = 1 << 40; s.Wake(0, at) })
	}
	if err := until(all, end); err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		st := s.stats()
		t.Logf("stream %d: round trip %d µs, least %d µs, window %d, %d segments", i, st.SRTT/us, st.MinRTT/us, st.Cwnd,
			s.Peers[1].Delivered)
		if st.MinRTT > 1600*us {
			t.Errorf("the least round trip is %d µs where the path takes 1,040", st.MinRTT/us)
		}
	}
}
