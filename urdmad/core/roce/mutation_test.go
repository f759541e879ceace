package roce_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// mutation is a change to one field of a packet, whose CRC is corrected.
type mutation struct {
	name   string
	change func(h *roce.Header, data []byte) []byte // returns the payload
	// moves: the packet gets another place in the stream, and may be accepted as the next in order.
	moves bool
	// foreign: no queue pair accepts the packet.
	foreign bool
	src     wire.IPv4 // of the packet, if it is another
	rights  bool      // it names memory with other rights
}

// mutations returns the changes to each field of an opcode's packets. Keys become those of regions.
func mutations(op roce.Opcode, regions []*enginetest.Region) (list []mutation) {
	add := func(name string, value any, moves bool, change func(h *roce.Header)) {
		list = append(list, mutation{name: fmt.Sprintf("%s %#x", name, value), change: func(h *roce.Header,
			data []byte) []byte {
			change(h)
			return data
		}, moves: moves})
	}
	foreign := func(name string, value any, change func(h *roce.Header)) { // other bytes are seen if they count
		list = append(list, mutation{name: fmt.Sprintf("%s %#x", name, value), change: func(h *roce.Header,
			data []byte) []byte {
			h.Immediate++
			for i := range data {
				data[i] ^= 0x55
			}
			change(h)
			return data
		}, foreign: true})
	}
	length := func(name string, change func(data []byte) []byte) {
		list = append(list, mutation{name: "payload " + name,
			change: func(_ *roce.Header, data []byte) []byte { return change(data) }})
	}
	add("nothing", 0, false, func(*roce.Header) {})
	for other := range roce.CNP {
		near := other.Transport() == op.Transport() || other.Operation() == op.Operation()
		if other.Traits() != 0 && other != op && near {
			// it concerns requests of the other side
			turned := other.Traits().Is(roce.Response) != op.Traits().Is(roce.Response)
			add("opcode", uint8(other), turned, func(h *roce.Header) { h.Opcode = other })
		}
	}
	for _, by := range []uint32{1, 2, 3, 100, 1 << 16, 1 << 23, 1<<23 - 1, 1<<24 - 1, 1<<24 - 2, 1<<24 - 100} {
		add("PSN +", by, true, func(h *roce.Header) { h.PSN = h.PSN.Add(by) })
	}
	add("acknowledgement asked for", 0, false, func(h *roce.Header) { h.AckReq = !h.AckReq })
	add("solicited", 0, false, func(h *roce.Header) { h.Solicited = !h.Solicited })
	foreign("partition", 0, func(h *roce.Header) { h.PKey = 1 })
	for _, n := range []wire.QPN{0, 2, 0x7fffff, 0xffffff} {
		foreign("queue pair", n, func(h *roce.Header) { h.Dst = n })
	}
	if op.Transport() != roce.UD {
		foreign("from another address", 0, func(*roce.Header) {})
		list[len(list)-1].src = wire.IPv4{10, 0, 0, 77}
	}
	add("congestion", 0, false, func(h *roce.Header) { h.FECN, h.BECN = true, true })
	length("empty", func([]byte) []byte { return nil })
	length("shorter by a word", func(b []byte) []byte { return b[:max(0, len(b)-4)] })
	length("shorter by a byte", func(b []byte) []byte { return b[:max(0, len(b)-1)] })
	length("longer by a byte", func(b []byte) []byte { return append(b, 0x77) })
	length("longer by a word", func(b []byte) []byte { return append(b, 0x77, 0x77, 0x77, 0x77) })
	if op.Transport() == roce.UD {
		for _, n := range []uint32{0, enginetest.QKey + 1, enginetest.QKey ^ 1<<31, ibcm.QKey} {
			foreign("Q_Key", n, func(h *roce.Header) { h.QKey = n })
			add("sender", n, false, func(h *roce.Header) { h.Src = wire.QPN(n) })
		}
	}
	switch op := op.Operation(); {
	case op == roce.WriteFirst, op == roce.WriteOnly, op == roce.WriteOnlyImmediate, op == roce.ReadRequest:
		for _, n := range []uint32{0, 1, 999, 1000, 1024, 1025, 2999, 3001, 6000, 1 << 16, 1<<16 + 1, 1 << 31, 1<<31 + 1,
			math.MaxUint32} {
			add("length", n, false, func(h *roce.Header) { h.Length = n })
		}
		fallthrough
	case op == roce.CompareSwap, op == roce.FetchAdd:
		for _, by := range []uint64{1, 8, 1024, 1 << 15, 1<<16 - 8, 1 << 16, 1 << 32, 1 << 63, math.MaxUint64,
			math.MaxUint64 - 7} {
			add("address +", by, false, func(h *roce.Header) { h.VA += by })
		}
		for _, va := range []uint64{0, math.MaxUint64} {
			add("address", va, false, func(h *roce.Header) { h.VA = va })
		}
		for _, key := range []wire.STag{0, math.MaxUint32} {
			add("key", uint32(key), false, func(h *roce.Header) { h.RKey = key })
		}
		for i, r := range regions {
			key := wire.STag(r.STag)
			add("key of region", i, false, func(h *roce.Header) { h.RKey = key })
			add("address and key of region", i, false, func(h *roce.Header) { h.VA, h.RKey = r.Base(), key })
			list[len(list)-1].rights = true
		}
	case op == roce.Acknowledge, op == roce.AtomicAcknowledge, op >= roce.ResponseFirst && op <= roce.ResponseOnly &&
		op != roce.ResponseMiddle:
		for _, s := range []roce.Syndrome{0, 1, 31, roce.RNR, roce.RNR | 31, 2 << 5, roce.NAKSequence, roce.NAKInvalid,
			roce.NAKAccess, roce.NAKOperational, roce.NAK | 4, roce.NAK | 31, 4 << 5, 7<<5 | 31} {
			add("syndrome", uint8(s), false, func(h *roce.Header) { h.AETH.Syndrome = s })
		}
		for _, n := range []uint32{0, 1, 1<<24 - 1} {
			add("MSN", n, false, func(h *roce.Header) { h.AETH.MSN = n })
		}
	}
	return list
}

// mutated is a pair of queue pairs, and a change to one of their packets.
type mutated struct{ *enginetest.Mutated }

func newMutated(t *testing.T) *mutated {
	return &mutated{enginetest.NewMutated(t, enginetest.Options{Seed: 77, RoCE: true, NoCapture: true})}
}

// mutationStride makes a short test try only each nth mutation: a prime number, so that each kind has its turn.
const mutationStride = 11

// packets calls see for each packet of the connection, numbered from 0, until see returns true; see also returns
// whether that packet is lost.
func (m *mutated) packets(see func(i int, frame []byte) (found, lost bool)) {
	n, over := 0, false
	watch(m.World, func(frame, payload []byte) (lost bool) {
		if over || roce.Opcode(payload[0]).Transport() != roce.RC {
			return false
		}
		over, lost = see(n, frame)
		n++
		return lost
	})
}

// changed returns a packet with a change.
func changed(t testing.TB, frame []byte, change *mutation) []byte {
	var h roce.Header
	payload := frame[wire.UDPHeaderLen:]
	from, to, err := h.Payload(payload, len(payload))
	if err != nil {
		t.Fatal(err)
	}
	data := change.change(&h, append([]byte(nil), payload[from:to]...))
	h.Pad = uint8(roce.Padding(len(data)))
	b := make([]byte, roce.MaxHeaderLen+len(data)+4+roce.ICRCLen)
	n := h.Put(b)
	n += copy(b[n:], data) + int(h.Pad)
	var f wire.Frame
	if err := f.Parse(frame, len(frame)); err != nil {
		t.Fatal(err)
	}
	if change.src != (wire.IPv4{}) {
		f.SrcIP = change.src
	}
	out := make([]byte, wire.UDPHeaderLen+n+roce.ICRCLen)
	var u wire.UDPHeader
	u.Init(f.Src, f.Dst, f.SrcIP, f.DstIP, f.SrcPort, f.DstPort)
	u.Put(out, n+roce.ICRCLen, 0)
	copy(out[wire.UDPHeaderLen:], b[:n])
	var sums roce.Sums
	sums.Put(out[wire.EthernetLen:wire.UDPHeaderLen], out[wire.UDPHeaderLen:])
	wire.SetUDPChecksum(out)
	return out
}

// inject lets a packet arrive, with a change.
func (m *mutated) inject(frame []byte, change *mutation) { m.Inject(changed(m.T, frame, change)) }

// mutations returns the changes to a packet of the exchange.
func (m *mutated) mutations(op roce.Opcode) []mutation {
	return mutations(op, m.Keys())
}

// TestMutations changes each field of each packet of an exchange. The changed packet arrives instead of the packet,
// before it, right after it, or at the end.
func TestMutations(t *testing.T) {
	var ops []roce.Opcode
	m := newMutated(t)
	m.packets(func(_ int, frame []byte) (bool, bool) {
		ops = append(ops, roce.Opcode(frame[wire.UDPHeaderLen]))
		return false, false
	})
	m.Messages()
	m.Check()
	if m.Right(); !m.Well() || t.Failed() {
		t.Fatalf("the exchange itself goes wrong: %+v %+v", m.Done, m.Got)
	}
	seen := map[roce.Opcode]int{}
	tries := 0
	for i, op := range ops {
		if seen[op]++; seen[op] > 2 { // the first two of a kind represent the others
			continue
		}
		for k, c := range m.mutations(op) {
			for _, when := range []string{"instead", "before", "behind", "late"} {
				tries++
				if os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 && (!c.rights || when != "instead") {
					continue
				}
				t.Run(fmt.Sprintf("%d %s/%d %s", i, op, k, when), func(t *testing.T) { mutate(t, i, k, when) })
			}
		}
	}
}

// mutate runs an exchange with packet i changed in way k.
func mutate(t *testing.T, i, k int, when string) {
	m := newMutated(t)
	var change mutation
	var packet []byte
	m.packets(func(n int, frame []byte) (found, lost bool) {
		if n != i {
			return false, false
		}
		packet = append([]byte(nil), frame...)
		change = m.mutations(roce.Opcode(packet[wire.UDPHeaderLen]))[k]
		switch when {
		case "instead":
			m.inject(packet, &change)
			return true, true
		case "before": // the packet itself arrives again, as lost
			m.inject(packet, &change)
			m.inject(packet, &mutation{change: func(_ *roce.Header, b []byte) []byte { return b }})
			return true, true
		case "behind":
			m.inject(packet, &change)
		}
		return true, false
	})
	m.Messages()
	if when == "late" && packet != nil {
		m.inject(packet, &change)
		m.Pass(time.Second)
		m.Settle(0, 0)
	}
	m.Check()
	if t.Failed() || packet == nil {
		t.Errorf("%s", change.name)
		return
	}
	if change.foreign && !m.Well() {
		t.Errorf("%+v %+v", m.Done, m.Got)
	} else if change.foreign || (when == "behind" || when == "late") && !change.moves && m.Well() {
		m.Right()
	}
	if t.Failed() {
		t.Errorf("%s", change.name)
	}
}
