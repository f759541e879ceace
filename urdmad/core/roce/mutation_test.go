package roce_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// mutation is a change to one field of a packet, whose CRC is right all the same.
type mutation struct {
	name   string
	change func(h *roce.Header, data []byte) []byte // returns the payload
	// moves: the packet stands for another place in the stream than before, and may be taken for
	// the next in order.
	moves bool
}

// mutations are those of each field that an opcode's packets have.
func (m *mutated) mutations(op roce.Opcode) (list []mutation) {
	add := func(name string, value any, moves bool, change func(h *roce.Header)) {
		list = append(list, mutation{fmt.Sprintf("%s %#x", name, value), func(h *roce.Header, data []byte) []byte {
			change(h)
			return data
		}, moves})
	}
	length := func(name string, change func(data []byte) []byte) {
		list = append(list, mutation{"payload " + name, func(_ *roce.Header, data []byte) []byte { return change(data) },
			false})
	}
	add("nothing", 0, false, func(*roce.Header) {})
	for other := range roce.Opcode(32) {
		if other.Traits() != 0 && other != op {
			// it is about what the other side has asked for
			turned := other.Traits().Is(roce.Response) != op.Traits().Is(roce.Response)
			add("opcode", uint8(other), turned, func(h *roce.Header) { h.Opcode = other })
		}
	}
	for _, by := range []uint32{1, 2, 3, 100, 1 << 16, 1 << 23, 1<<23 - 1, 1<<24 - 1, 1<<24 - 2, 1<<24 - 100} {
		add("PSN +", by, true, func(h *roce.Header) { h.PSN = h.PSN.Add(by) })
	}
	add("acknowledgement asked for", 0, false, func(h *roce.Header) { h.AckReq = !h.AckReq })
	add("solicited", 0, false, func(h *roce.Header) { h.Solicited = !h.Solicited })
	add("partition", 0, false, func(h *roce.Header) { h.PKey = 1 })
	add("congestion", 0, false, func(h *roce.Header) { h.FECN, h.BECN = true, true })
	length("empty", func([]byte) []byte { return nil })
	length("shorter by a word", func(b []byte) []byte { return b[:max(0, len(b)-4)] })
	length("shorter by a byte", func(b []byte) []byte { return b[:max(0, len(b)-1)] })
	length("longer by a byte", func(b []byte) []byte { return append(b, 0x77) })
	length("longer by a word", func(b []byte) []byte { return append(b, 0x77, 0x77, 0x77, 0x77) })
	switch {
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
		for i, r := range []*enginetest.Region{m.guards[0], m.guards[1], m.source, m.inbox, m.received, m.fetch} {
			key := wire.STag(r.STag)
			add("key of region", i, false, func(h *roce.Header) { h.RKey = key })
			add("address and key of region", i, false, func(h *roce.Header) { h.VA, h.RKey = r.Base(), key })
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

// mutated is a pair of queue pairs whose programs exchange messages of all kinds, and a change to one of
// the packets.
type mutated struct {
	*enginetest.NumberPair
	source, inbox   *enginetest.Region    // of A's program, that B has no right to
	open            [2]*enginetest.Region // by program: the other may read and write it
	guards          [2]*enginetest.Region // nobody may
	received, fetch *enginetest.Region    // where B's receives and B's Read go
	done            [2][]abi.CQE          // of sends
	got             [2][]abi.CQE          // of receives
	waiting         [][]byte              // frames to be injected, and by whom they seem to be sent
	from            []*linked.Port
}

// mutationStride is of how many mutations a short test tries one; a prime number, so that each kind
// of them has its turn.
const mutationStride = 11

const (
	sendsOfA, sendsOfB = 7, 3
	mutationReceives   = 6
)

func newMutated(t *testing.T) *mutated {
	w := enginetest.New(t, enginetest.Options{Seed: 77, RoCE: true, NoCapture: true})
	m := &mutated{NumberPair: enginetest.ConnectedPairIn(w, false, 2)}
	a, b := m.QA.Client, m.QB.Client
	m.source, m.inbox = a.Register(1<<14, 0), a.Register(1<<14, mem.LocalWrite)
	m.received, m.fetch = b.Register(1<<14, mem.LocalWrite), b.Register(1<<14, mem.LocalWrite)
	for i, c := range []*enginetest.Client{a, b} {
		m.open[i] = c.Register(1<<16, enginetest.ReadWrite|mem.RemoteAtomic)
		m.guards[i] = c.Register(1<<12, 0)
		copy(m.guards[i].Bytes, bytes.Repeat([]byte{0x5e}, 1<<12))
	}
	for i := range m.source.Bytes {
		m.source.Bytes[i] = byte(i*7)%64 + 1
	}
	for i := range m.open[0].Bytes {
		m.open[0].Bytes[i], m.open[1].Bytes[i] = byte(i*5)%64+65, byte(i*3)%64+128
	}
	w.Intrude = func() {
		for i, frame := range m.waiting {
			m.from[i].Inject(frame)
		}
		m.waiting, m.from = m.waiting[:0], m.from[:0]
	}
	return m
}

// exchange has both programs post their messages, and waits until all have completed.
func (m *mutated) exchange() {
	for i := range mutationReceives {
		m.QA.PostRecv(uint64(i), m.inbox.SGE(8192, 4096))
		m.QB.PostRecv(uint64(i), m.received.SGE(0, 4096))
	}
	to := m.open[1]
	m.QA.Post(enginetest.Send(0), m.source.SGE(0, 3000))
	m.QA.Post(enginetest.Write(1, to, 8192), m.source.SGE(3000, 3000))
	m.QA.Post(enginetest.WithImmediate(enginetest.Write(2, to, 16384), 9), m.source.SGE(0, 900))
	m.QA.Post(enginetest.Read(3, to, 0), m.inbox.SGE(0, 3000))
	m.QA.Post(enginetest.FetchAdd(4, to, 32768, 1), m.inbox.SGE(3000, 8))
	m.QA.Post(enginetest.CmpSwap(5, to, 32776, 0, 7), m.inbox.SGE(3008, 8))
	m.QA.Post(enginetest.Send(6), m.source.SGE(0, 10))
	m.QB.Post(enginetest.Read(0, m.open[0], 0), m.fetch.SGE(0, 3000))
	m.QB.Post(enginetest.Send(1), m.fetch.SGE(4096, 2000))
	m.QB.Post(enginetest.Read(2, m.open[0], 4096), m.fetch.SGE(3000, 1000))
	m.settle(sendsOfA, sendsOfB)
}

// settle waits until the given number of sends of each program has completed.
func (m *mutated) settle(ofA, ofB int) {
	for end := m.Now() + clock.Time(time.Minute); m.Now() < end; m.Pass(5 * time.Millisecond) {
		for i, q := range []*enginetest.QP{m.QA, m.QB} {
			m.done[i] = append(m.done[i], q.Send.Poll()...)
			m.got[i] = append(m.got[i], q.Recv.Poll()...)
		}
		if len(m.done[0]) >= ofA && len(m.done[1]) >= ofB {
			return
		}
	}
}

// packets calls see for each packet of the connection, numbered from 0, until it returns true;
// of that one see says whether it is lost.
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

// inject has a packet come, with a change.
func (m *mutated) inject(frame []byte, change *mutation) {
	var h roce.Header
	payload := frame[wire.UDPHeaderLen:]
	from, to, err := h.Payload(payload, len(payload))
	if err != nil {
		m.T.Fatal(err)
	}
	data := change.change(&h, append([]byte(nil), payload[from:to]...))
	h.Pad = uint8(roce.Padding(len(data)))
	b := make([]byte, roce.MaxHeaderLen+len(data)+4+roce.ICRCLen)
	n := h.Put(b)
	n += copy(b[n:], data) + int(h.Pad)
	var f wire.Frame
	if err := f.Parse(frame, len(frame)); err != nil {
		m.T.Fatal(err)
	}
	out := make([]byte, wire.UDPHeaderLen+n+roce.ICRCLen)
	var u wire.UDPHeader
	u.Init(f.Src, f.Dst, f.SrcIP, f.DstIP, f.SrcPort, f.DstPort)
	u.Put(out, n+roce.ICRCLen, 0)
	copy(out[wire.UDPHeaderLen:], b[:n])
	var sums roce.Sums
	sums.Put(out[wire.EthernetLen:wire.UDPHeaderLen], out[wire.UDPHeaderLen:])
	wire.SetUDPChecksum(out)
	by := m.A.Port
	if binary.BigEndian.Uint32(f.SrcIP[:]) == binary.BigEndian.Uint32(m.B.Addr.AsSlice()) {
		by = m.B.Port
	}
	m.waiting, m.from = append(m.waiting, out), append(m.from, by)
}

// check verifies the properties that hold for any packet: memory without rights is neither written nor
// read, and each message completes once.
func (m *mutated) check() {
	m.T.Helper()
	want := bytes.Repeat([]byte{0x5e}, 1<<12)
	for i, g := range m.guards {
		if !bytes.Equal(g.Bytes, want) {
			m.T.Errorf("memory without rights of program %d was written", i)
		}
	}
	for i := range m.source.Bytes {
		if m.source.Bytes[i] != byte(i*7)%64+1 {
			m.T.Fatalf("what A sends was written at %d", i)
		}
	}
	for name, r := range map[string]*enginetest.Region{"what A reads": m.inbox, "what B receives": m.received,
		"what B reads": m.fetch} {
		if bytes.Contains(r.Bytes, want[:8]) {
			m.T.Errorf("%s has come from memory without rights", name)
		}
	}
	for i, posted := range []int{sendsOfA, sendsOfB} {
		seen := map[uint64]bool{}
		for _, e := range m.done[i] {
			if seen[e.WRID] {
				m.T.Errorf("send %d of program %d has completed twice", e.WRID, i)
			}
			seen[e.WRID] = true
		}
		if len(seen) < posted {
			m.T.Errorf("%d of %d sends of program %d have completed", len(seen), posted, i)
		}
		if len(m.got[i]) > mutationReceives {
			m.T.Errorf("program %d has %d receives", i, len(m.got[i]))
		}
	}
}

// well reports whether all has gone well.
func (m *mutated) well() bool {
	for _, list := range append(m.done[:], m.got[:]...) {
		for _, e := range list {
			if e.Status != abi.StatusSuccess {
				return false
			}
		}
	}
	return true
}

// right checks that every byte is where it belongs, and that the connection goes on.
func (m *mutated) right() {
	m.T.Helper()
	to := m.open[1].Bytes
	for name, differ := range map[string]bool{
		"the Send":                !bytes.Equal(m.received.Bytes[:10], m.source.Bytes[:10]),
		"the Write":               !bytes.Equal(to[8192:][:3000], m.source.Bytes[3000:][:3000]),
		"the Write's immediate":   !bytes.Equal(to[16384:][:900], m.source.Bytes[:900]),
		"A's Read":                !bytes.Equal(m.inbox.Bytes[:3000], to[:3000]),
		"the atomic, what it got": m.inbox.Bytes[3000]+1 != to[32768],
		"B's Read":                !bytes.Equal(m.fetch.Bytes[:3000], m.open[0].Bytes[:3000]),
		"B's second Read":         !bytes.Equal(m.fetch.Bytes[3000:][:1000], m.open[0].Bytes[4096:][:1000]),
		"between the Writes": to[8192-1] != byte((8192-1)*3%256)%64+128 ||
			to[8192+3000] != byte((8192+3000)*3%256)%64+128,
	} {
		if differ {
			m.T.Errorf("%s: wrong bytes", name)
		}
	}
	if len(m.got[1]) != 3 || len(m.got[0]) != 1 {
		m.T.Errorf("%d and %d receives, expected 1 and 3", len(m.got[0]), len(m.got[1]))
	}
}

// TestMutations changes each field of each packet of an exchange, and has that come in the
// packet's place, before it, right behind it, or when all is over.
func TestMutations(t *testing.T) {
	var ops []roce.Opcode
	m := newMutated(t)
	m.packets(func(_ int, frame []byte) (bool, bool) {
		ops = append(ops, roce.Opcode(frame[wire.UDPHeaderLen]))
		return false, false
	})
	m.exchange()
	m.check()
	if m.right(); !m.well() || t.Failed() {
		t.Fatalf("the exchange itself goes wrong: %+v %+v", m.done, m.got)
	}
	seen := map[roce.Opcode]int{}
	tries := 0
	for i, op := range ops {
		if seen[op]++; seen[op] > 2 { // the first and the second of a kind stand for the others
			continue
		}
		for k := range m.mutations(op) {
			for _, when := range []string{"instead", "before", "behind", "late"} {
				if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d %s/%d %s", i, op, k, when), func(t *testing.T) { mutate(t, i, k, when) })
			}
		}
	}
}

// mutate has packet i changed in way k.
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
		case "before": // the packet itself comes again, as lost
			m.inject(packet, &change)
			m.inject(packet, &mutation{change: func(_ *roce.Header, b []byte) []byte { return b }})
			return true, true
		case "behind":
			m.inject(packet, &change)
		}
		return true, false
	})
	m.exchange()
	if when == "late" && packet != nil {
		m.inject(packet, &change)
		m.Pass(time.Second)
		m.settle(0, 0)
	}
	m.check()
	if t.Failed() || packet == nil {
		t.Errorf("%s", change.name)
		return
	}
	if (when == "behind" || when == "late") && !change.moves && m.well() {
		m.right()
	}
	if t.Failed() {
		t.Errorf("%s", change.name)
	}
}
