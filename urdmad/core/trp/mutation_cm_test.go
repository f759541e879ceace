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

// TestManagementMutations changes each field of each packet that programs with rdma_cm send, over IPv4 and IPv6. The
// changed packet arrives instead of the packet, before it, or after any later one.
func TestManagementMutations(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { managementMutations(t, false) })
	t.Run("IPv6", func(t *testing.T) { managementMutations(t, true) })
}

func managementMutations(t *testing.T, six bool) {
	var all [][]byte
	m := enginetest.NewManaged(t, enginetest.Options{IPv6: six})
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
					t.Run(fmt.Sprintf("%d/%d at %d", i, k, at-i), func(t *testing.T) { mismanage(t, six, i, k, at) })
				}
			}
		}
	}
	t.Logf("%d packets, %d changes", len(all), tries)
}

// mismanage runs an exchange with packet i changed in way k. The changed packet arrives after packet at; instead of
// packet i if at is i-2; before it if at is i-1.
func mismanage(t *testing.T, six bool, i, k, at int) {
	m := enginetest.NewManaged(t, enginetest.Options{IPv6: six})
	var packet, message []byte
	var change mutation
	come := false
	packets(m.World, func(n int, frame, payload []byte) (lost bool) {
		if n == i {
			packet, message = bytes.Clone(frame), bytes.Clone(payload)
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
	if unrelated(message, &change) && !m.Well() {
		t.Errorf("a packet of somebody else counts: %v", [...]bool{m.Connected, m.Rejected, m.Answered, m.Sent})
	}
	m.Live(time.Second)
	if m.End(); t.Failed() {
		t.Errorf("packet %x: %s", message[:min(80, len(message))], change.name)
	}
}
