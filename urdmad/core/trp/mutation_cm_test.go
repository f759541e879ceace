package trp_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// unrelated reports whether a changed packet concerns nothing that its original concerns. An accept or reject may
// come from any port number of its host.
func unrelated(payload []byte, c *mutation) bool {
	switch op := wire.TRPOp(payload[8] >> 4); op {
	case wire.OpAccept, wire.OpReject, wire.OpRetry, wire.OpResolved:
		return c.name == anotherAddress
	case wire.OpRequest:
		return c.foreign && c.name != anotherTarget
	default:
		return c.foreign
	}
}

// TestManagementMutations changes each field of each packet that programs with rdma_cm send. The changed packet
// arrives instead of the packet, before it, or after any later one.
func TestManagementMutations(t *testing.T) {
	var all [][]byte
	m := enginetest.NewManaged(t, false)
	packets(m.World, func(_ int, _, payload []byte) bool {
		all = append(all, bytes.Clone(payload))
		return false
	})
	m.Run()
	if m.End(); t.Failed() || !m.Well() {
		t.Fatalf("without a change: %+v", m)
	}
	tries, stride := 0, mutationStride()
	for i, p := range all {
		for k, c := range mutations(p, nil) {
			for at := i - 2; at <= len(all); at++ {
				if tries++; tries%stride == 0 || c.from != nil && at < i {
					t.Run(fmt.Sprintf("%d/%d at %d", i, k, at-i), func(t *testing.T) { mismanage(t, i, k, at) })
				}
			}
		}
	}
	t.Logf("%d packets, %d changes", len(all), tries)
}

// mismanage runs an exchange with packet i changed in way k. The changed packet arrives after packet at; instead of
// packet i if at is i-2; before it if at is i-1.
func mismanage(t *testing.T, i, k, at int) {
	m := enginetest.NewManaged(t, false)
	var packet []byte
	var change mutation
	come := false
	packets(m.World, func(n int, frame, payload []byte) (lost bool) {
		if n == i {
			packet = bytes.Clone(frame)
			list := mutations(payload, nil)
			change = list[k%len(list)]
		}
		if n == max(i, at) {
			come = true
			m.Inject(changed(t, packet, &change))
		}
		if n == i && at == i-1 {
			m.Inject(packet)
		}
		return n == i && at < i
	})
	m.Run()
	if !come { // at the end
		m.Inject(changed(t, packet, &change))
	}
	payload := packet[wire.UDPHeaderLen:]
	if unrelated(payload, &change) && !m.Well() {
		t.Errorf("a packet of somebody else counts: %v", [...]bool{m.Connected, m.Rejected, m.Answered, m.Sent})
	}
	m.Live(time.Second)
	if m.End(); t.Failed() {
		t.Errorf("packet %x: %s", payload[:min(80, len(payload))], change.name)
	}
}
