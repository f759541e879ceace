package memif

import "testing"

// TestRefsOfManyLinks: after any number of reconnections, refs stay within the bits that package port allows
// to drivers, and differ from those of private buffers.
func TestRefsOfManyLinks(t *testing.T) {
	p := &Port{queues: make([]*queue, 1)}
	for _, before := range []uint32{0, 1<<30 - 2, 1<<30 - 1, 1 << 30, 1 << 31, 1<<32 - 1} {
		p.epoch.Store(before)
		l := p.newLink(control{}, "")
		if r := makeRef(l.epoch, refTx, 1<<28-1); r >= 1<<62 || l.epoch == 0 || ref(r).epoch() != l.epoch {
			t.Errorf("after %d links: epoch %d, packets are named %#x", before, l.epoch, r)
		}
	}
}
