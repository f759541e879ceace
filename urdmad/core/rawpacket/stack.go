package rawpacket

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"urdma/dpdk/port"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Stack has the queue pairs of type RAW_PACKET of one worker.
type Stack struct {
	Stats Stats

	table *qp.Table
	do    func(fn func()) // runs fn on the worker's thread soon; any goroutine may call it
	ports []*Port

	// Frames for this worker's queue pairs that another worker or a sender hands over.
	handed  chan handed
	pending atomic.Bool   // take will run
	take    func()        // the method takeHanded; a value made for each frame would be allocated
	room    sync.Pool     // buffers of handed frames
	full    atomic.Uint64 // frames for which handed had no room
}

// Stats counts frames of queue pairs of type RAW_PACKET.
type Stats struct {
	Sent      uint64 `counter:"raw_packets_sent"`
	Received  uint64 `counter:"raw_packets_received"`
	NoReceive uint64 `counter:"raw_packets_no_receive"` // dropped, like the following
	NoRoom    uint64 `counter:"raw_packets_no_room"`    // the receive is too short
	Overrun   uint64 `counter:"raw_packets_overrun"`    // too many wait to be handed over
}

// Port is a port of frames as one worker uses it.
type Port struct {
	If   *netif.Interface
	s    *Stack
	wire *Wire // nil: the port has no raw packets
}

// handed is a frame for a queue pair of another worker, or of this one in a later turn.
type handed struct {
	to    *Flow
	frame *[]byte
}

// mostHanded bounds the frames that wait for a worker.
const mostHanded = 256

// frameCost is the cost of giving a frame to a flow, as the number of bytes that could be copied meanwhile.
const frameCost = 512

// NewStack returns a Stack without ports. do runs a function on the worker's thread soon; any goroutine may call
// it.
func NewStack(t *qp.Table, do func(fn func())) *Stack {
	s := &Stack{table: t, do: do, handed: make(chan handed, mostHanded)}
	s.take = s.takeHanded
	s.room.New = func() any { return new([]byte) }
	return s
}

// AddPort adds an interface, without raw packets so far. Its device number is the next free one.
func (s *Stack) AddPort(n *netif.Interface) { s.ports = append(s.ports, &Port{If: n, s: s}) }

// Open allows raw packets on the port of device dev, as w says; call it before the first turn.
func (s *Stack) Open(dev int, w *Wire) {
	p := s.ports[dev]
	p.wire, p.If.Raw = w, p.passes
}

// Wire returns the port of device dev as all workers see it, or nil if it has no raw packets.
func (s *Stack) Wire(dev int) *Wire { return s.ports[dev].wire }

// Counts returns a copy of the counters.
func (s *Stack) Counts() Stats {
	all := s.Stats
	all.Overrun += s.full.Load()
	return all
}

// Modify changes a queue pair as ibv_modify_qp(3) requests; the caller has checked that its port, of device dev,
// has raw packets. From RTR on it receives frames. If it returns an error, nothing has changed.
func (s *Stack) Modify(q *qp.QP, dev int, mask uint32, a *abi.QPAttr) error {
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	if qp.Receives(q.State()) && q.Carrier() == nil {
		p := &Pair{port: s.ports[dev]}
		p.QP, p.Dev, p.ByNumber = q, dev, true
		p.Local = netip.AddrPortFrom(p.port.If.IP(), 0)
		s.table.Serve(q, p)
	}
	return nil
}

// passes is shown each frame of the port, and gives it to the flows. A frame that another worker has passed on
// was shown there, one from a worker of this urdmad was on no wire.
func (p *Port) passes(v *port.Packet, sent bool) {
	f := p.wire.flows.Load()
	if f == nil || v.Flags&(port.RxInside|port.RxAgain) != 0 {
		return
	}
	if sent { // copied first, because the sender must not meet a fault in the memory of others
		for _, one := range f.sniffers {
			one.stack.hand(one, v.Data)
		}
		return
	}
	var private [wire.MaxHeaderLen]byte
	head := private[:copy(private[:], v.Data)]
	if !mayReceive(p.wire.Access, head) {
		return
	}
	for _, one := range f.sniffers {
		p.give(one, v.Data)
	}
	steer(f.steering, head, func(one *Flow) { p.give(one, v.Data) })
}

// returns gives a frame that a queue pair sends to the flows of the same port, if it is for a group or for the
// port itself.
func (p *Port) returns(frame []byte) {
	f := p.wire.flows.Load()
	if dst := wire.MAC(frame); f == nil || !dst.IsGroup() && dst != p.If.MAC() {
		return
	}
	var private [wire.MaxHeaderLen]byte
	head := private[:copy(private[:], frame)]
	steer(f.steering, head, func(one *Flow) { one.stack.hand(one, frame) })
}

// give gives a received frame to a flow, in a later turn if this one's budget is used up.
func (p *Port) give(to *Flow, frame []byte) {
	if to.stack != p.s || p.s.table.Overspent(0) {
		to.stack.hand(to, frame)
		return
	}
	to.receive(frame)
	p.s.table.Serving = nil
}

// hand gives this stack's worker a copy of a frame; any worker may call it. If too many wait, the frame is
// dropped.
func (s *Stack) hand(to *Flow, frame []byte) {
	if len(s.handed) == cap(s.handed) { // checked before copying
		s.full.Add(1)
		return
	}
	b := s.room.Get().(*[]byte)
	*b = append((*b)[:0], frame...)
	select {
	case s.handed <- handed{to, b}:
	default:
		s.room.Put(b)
		s.full.Add(1)
		return
	}
	if !s.pending.Swap(true) {
		s.do(s.take)
	}
}

// takeHanded receives the frames that wait now, within a turn's budget. The others follow, also if a fault in a
// client's memory ends it.
func (s *Stack) takeHanded() {
	s.pending.Store(false)
	defer func() {
		if len(s.handed) > 0 && !s.pending.Swap(true) {
			s.do(s.take)
		}
	}()
	for n := len(s.handed); n > 0 && !s.table.Overspent(0); n-- {
		h := <-s.handed
		h.to.receive(*h.frame)
		s.table.Serving = nil
		s.room.Put(h.frame)
	}
}
