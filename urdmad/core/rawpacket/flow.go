package rawpacket

import (
	"slices"
	"sync"
	"sync/atomic"

	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Flow selects frames of a port for a queue pair. It does not change.
type Flow struct {
	qp          *qp.QP
	stack       *Stack // of the queue pair's worker
	dev         int
	rank        uint32 // lower ranks first
	sniffer     bool
	traps       bool // flows of higher ranks do not get the frame
	layers      uint32
	value, mask key
}

// Wire is a port as all workers see it: what it allows, and its flows.
type Wire struct {
	Access uint32 // enum urdma_abi_raw_packets

	mu    sync.Mutex
	flows atomic.Pointer[flows] // nil: none
}

// flows are a port's flows; they do not change.
type flows struct {
	sniffers []*Flow // get every frame
	steering []*Flow // in the order of their ranks
}

// defaultRank is the rank of flows for frames that no other flow has taken.
const defaultRank = 1 << 16

// NewFlow returns a flow as a client requests it, for a queue pair of this worker and a port; the caller has
// checked the request.
func (s *Stack) NewFlow(q *qp.QP, dev int, m *abi.CreateFlowRequest) *Flow {
	f := &Flow{qp: q, stack: s, dev: dev, rank: m.Priority, sniffer: m.Type == abi.FlowSniffer,
		traps: m.Flags&abi.FlowFlagsDontTrap == 0, layers: m.Layers, value: keyOf(&m.Value), mask: keyOf(&m.Mask)}
	switch m.Type {
	case abi.FlowAllDefault:
		f.rank = defaultRank
	case abi.FlowMCDefault:
		var group [abi.FlowKey]byte
		group[0] = 1 // IEEE 802.3 section 3.2.3
		f.rank, f.value, f.mask = defaultRank, keyOf(&group), keyOf(&group)
	}
	for i := range f.value {
		f.value[i] &= f.mask[i]
	}
	return f
}

// Add adds a flow of the port; any worker may call it.
func (w *Wire) Add(f *Flow) {
	w.change(f, func(list []*Flow) []*Flow {
		at := 0
		for at < len(list) && list[at].rank <= f.rank {
			at++
		}
		return slices.Insert(list, at, f)
	})
}

// Remove removes a flow of the port; any worker may call it. Frames that were handed over may still arrive.
func (w *Wire) Remove(f *Flow) {
	w.change(f, func(list []*Flow) []*Flow {
		return slices.DeleteFunc(list, func(one *Flow) bool { return one == f })
	})
}

// change replaces the list that a flow belongs to.
func (w *Wire) change(f *Flow, with func(list []*Flow) []*Flow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now flows
	if old := w.flows.Load(); old != nil {
		now = *old
	}
	list := &now.steering
	if f.sniffer {
		list = &now.sniffers
	}
	*list = with(slices.Clone(*list))
	if len(now.sniffers)+len(now.steering) == 0 {
		w.flows.Store(nil)
		return
	}
	w.flows.Store(&now)
}

// matches reports whether a frame with these header fields matches.
func (f *Flow) matches(k *key, layers uint32) bool {
	if f.layers&^layers != 0 {
		return false
	}
	for i := range k {
		if k[i]&f.mask[i] != f.value[i] {
			return false
		}
	}
	return true
}

// steer calls to for each flow that gets a frame: those of the lowest rank that match, and those of higher
// ranks if no flow has trapped it.
func steer(list []*Flow, head []byte, to func(f *Flow)) {
	if len(list) == 0 {
		return
	}
	k, layers := fields(head)
	trapped, rank := false, uint32(0)
	for _, f := range list {
		if trapped && f.rank != rank {
			return
		}
		if f.matches(&k, layers) {
			to(f)
			trapped, rank = trapped || f.traps, f.rank
		}
	}
}
