package trp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"os"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// mutationStride makes a test try only each nth mutation: prime numbers, so that each kind has its turn.
func mutationStride() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 7
	}
	return 127
}

// field is a number in a packet; of says what the number is, which determines the values to try.
type field struct {
	name     string
	at, size int
	of       meaning
}

type meaning int

const (
	number meaning = iota
	sequence
	key
	address
	length
)

// headerFields returns the fields of the TRP header (docs/WIRE.md chapter 2).
func headerFields(control bool) []field {
	list := []field{{"PSN", 0, 4, sequence}, {"Ack", 4, 4, sequence}, {"op and credits", 8, 2, number}}
	if control {
		return list
	}
	return append(list, field{"flags", 10, 2, number}, field{"cookie", 12, 4, number})
}

// segmentFields returns the fields of a DDP segment at an offset, with its RDMAP header (RFC 5041, RFC 5040, RFC
// 7306).
func segmentFields(b []byte, at int) []field {
	list := []field{{"DDP control", at, 1, number}, {"RDMAP control", at + 1, 1, number}}
	if b[at]&0x80 != 0 {
		return append(list, field{"STag", at + 2, 4, key}, field{"TO", at + 6, 8, address})
	}
	list = append(list, field{"STag", at + 2, 4, key}, field{"QN", at + 6, 4, number}, field{"MSN", at + 10, 4, sequence},
		field{"MO", at + 14, 4, length})
	body := at + wire.UntaggedLen
	switch wire.Opcode(b[at+1] & 0xf) {
	case wire.OpReadRequest:
		list = append(list, field{"sink STag", body, 4, key}, field{"sink TO", body + 4, 8, address},
			field{"read length", body + 12, 4, length}, field{"source STag", body + 16, 4, key},
			field{"source TO", body + 20, 8, address})
	case wire.OpAtomicRequest:
		list = append(list, field{"atomic opcode", body, 4, number}, field{"request ID", body + 4, 4, sequence},
			field{"atomic STag", body + 8, 4, key}, field{"atomic TO", body + 12, 8, address})
	case wire.OpAtomicResponse:
		list = append(list, field{"request ID", body, 4, sequence})
	case wire.OpTerminate:
		list = append(list, field{"code", body, 2, number}, field{"headers", body + 2, 1, number},
			field{"segment length", body + 4, 2, length})
	}
	return list
}

// connectFields returns the fields of a request, accept or reject (docs/WIRE.md chapter 3).
func connectFields(b []byte, at int) []field {
	list := []field{{"private length", at, 2, length}, {"IRD", at + 2, 2, number}, {"ORD", at + 4, 2, number}}
	at += wire.ConnectLen + int(binary.BigEndian.Uint16(b[at:]))
	for _, f := range []field{{"magic", 0, 2, number}, {"version", 2, 1, number}, {"extension length", 3, 1, length},
		{"their cookie", 4, 4, number}, {"QPN", 8, 4, sequence}, {"segment", 12, 2, length}, {"window", 14, 2, length},
		{"capabilities", 16, 4, number}, {"target", 20, 4, sequence}, {"echo", 24, 4, number}, {"timer", 28, 1, number},
		{"path MTU", 32, 1, number}, {"RQ PSN", 33, 2, number}} {
		if f.at += at; f.at+f.size <= len(b) {
			list = append(list, f)
		}
	}
	return list
}

// fieldsOf returns the fields of a packet, and the end of its header.
func fieldsOf(payload []byte) (list []field, end int) {
	var t wire.TRP
	end, err := t.Parse(payload)
	if err != nil {
		return nil, len(payload)
	}
	list = headerFields(t.Op.IsControl())
	switch {
	case t.Op.IsControl():
		list = append(list, connectFields(payload, end)...)
	case t.Op == wire.OpSack:
		for at := end; at+4 <= len(payload); at += 4 {
			list = append(list, field{"run", at, 4, sequence})
		}
	case len(payload) >= end+wire.TaggedLen:
		list = append(list, segmentFields(payload, end)...)
	}
	return list, end
}

// mutation is a change to a packet's payload, or to its source or destination.
type mutation struct {
	name    string
	change  func(b []byte) []byte
	from    func(src, dst *netip.AddrPort) // nil: unchanged
	segment bool                           // only bytes after the TRP header are changed
	foreign bool                           // the packet has the same effect as a lost one
	rights  bool                           // it names memory with other rights
}

const anotherAddress, anotherTarget = "from another address", "to another port"

func unchanged(b []byte) []byte { return b }

// fin makes a packet of a connection say that the peer has ended or refused it, which has an effect if the packet
// counts.
func fin(b []byte) []byte {
	op := wire.TRPOp(b[8] >> 4)
	switch {
	case op == wire.OpAccept:
		op = wire.OpReject
	case !op.IsControl():
		op = wire.OpFin
	}
	b[8] = b[8]&0xf | byte(op)<<4
	return b
}

// mutations returns the changes to each field of a packet, and to its length. Keys become those of the regions.
func mutations(payload []byte, regions []*enginetest.Region) (list []mutation) {
	fields, end := fieldsOf(payload)
	for i, f := range fields {
		for _, v := range values(f, payload, regions) {
			list = append(list, mutation{fmt.Sprintf("%s %#x", f.name, v), func(b []byte) []byte {
				var n [8]byte
				binary.BigEndian.PutUint64(n[:], v)
				copy(b[f.at:], n[8-f.size:])
				if f.name == "cookie" {
					return fin(b)
				}
				return b
			}, nil, f.at >= end, f.name == "cookie" && v&math.MaxUint32 != uint64(binary.BigEndian.Uint32(payload[f.at:])),
				false})
		}
		for _, r := range regions {
			if i > 0 && f.of == address && fields[i-1].of == key {
				list = append(list, mutation{f.name + " and key of a region", func(b []byte) []byte {
					binary.BigEndian.PutUint32(b[fields[i-1].at:], uint32(r.STag))
					binary.BigEndian.PutUint64(b[f.at:], r.Base())
					return b
				}, nil, true, false, true})
			}
		}
	}
	for _, n := range []int{0, 1, 9, 10, 15, 16, 17, end + wire.TaggedLen - 1, end + wire.TaggedLen,
		end + wire.UntaggedLen - 1, end + wire.UntaggedLen, len(payload) - 4, len(payload) - 1} {
		list = append(list, mutation{fmt.Sprintf("cut to %d bytes", n),
			func(b []byte) []byte { return b[:max(0, min(n, len(b)))] }, nil, n > end, false, false})
	}
	for _, n := range []int{1, 4, 8, 400} {
		list = append(list, mutation{fmt.Sprintf("longer by %d bytes", n),
			func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0x77}, n)...) }, nil, len(payload) > end, false, false})
	}
	for _, way := range []mutation{
		{name: anotherAddress, from: func(src, _ *netip.AddrPort) {
			ip := src.Addr().AsSlice()
			ip[len(ip)-1] = 77
			other, _ := netip.AddrFromSlice(ip)
			*src = netip.AddrPortFrom(other, src.Port())
		}},
		{name: "from another port", from: func(src, _ *netip.AddrPort) { *src = netip.AddrPortFrom(src.Addr(), src.Port()^1) }},
		{name: anotherTarget, from: func(_, dst *netip.AddrPort) { *dst = netip.AddrPortFrom(dst.Addr(), dst.Port()^1) }},
	} {
		way.change, way.segment, way.foreign = fin, true, true
		list = append(list, way)
	}
	return append(list, mutation{"nothing", unchanged, nil, len(payload) > end, false, false})
}

// values returns new values for a field: the bounds of its type, the values next to the right one, and other keys,
// addresses and numbers of the exchange.
func values(f field, payload []byte, regions []*enginetest.Region) (list []uint64) {
	var n [8]byte
	copy(n[8-f.size:], payload[f.at:][:f.size])
	was, bits := binary.BigEndian.Uint64(n[:]), uint(f.size*8)
	list = []uint64{0, 1, was + 1, was - 1, math.MaxUint64, 1 << (bits - 1), 1<<(bits-1) - 1, was ^ 1<<(bits-1),
		was ^ 1<<(bits-2), was ^ 1<<(bits-4)}
	switch f.of {
	case number:
		for v := range uint64(16) {
			list = append(list, v<<(bits-4)|was&(1<<(bits-4)-1), was&^15|v)
		}
	case sequence:
		list = append(list, was+2, was+100, was-100, was+1<<16, was+1<<(bits-1)-1)
	case length:
		list = append(list, 64, 127, 128, 512, 513, 999, 1000, 3000, 4096, 6000, 1<<16, 1<<16+1, math.MaxUint64-7)
	case address, key:
		for _, r := range regions {
			list = append(list, map[meaning]uint64{key: uint64(r.STag), address: r.Base()}[f.of])
		}
		if f.of == address {
			list = append(list, was+8, was+1000, was+1<<15, was+1<<16-8, was+1<<32, math.MaxUint64-7)
		}
	}
	return list
}

// mutated is a pair of queue pairs, and a change to one of their packets.
type mutated struct {
	*enginetest.Mutated
	scenario string
}

// The exchanges: without loss; with loss, which sacks report; and one that ends with a Terminate.
var scenarios = []string{"plain", "lossy", "refused"}

func newMutated(t *testing.T, scenario string) *mutated {
	return &mutated{enginetest.NewMutated(t, enginetest.Options{Seed: 77, NoCapture: true}), scenario}
}

// packets calls see for each packet, numbered from 0; see returns whether it is lost.
func packets(w *enginetest.World, see func(i int, frame, payload []byte) (lost bool)) {
	n := -1
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		var f wire.Frame
		if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
			return false
		}
		n++
		return see(n, frame[:f.PayloadOff+f.PayloadLen], frame[f.PayloadOff:][:f.PayloadLen])
	}})
}

// packets calls see for each packet of the connection, numbered from 0; see returns whether it is lost.
func (m *mutated) packets(see func(i int, frame, payload []byte) (lost bool)) {
	packets(m.World, func(n int, frame, payload []byte) bool {
		lost := see(n, frame, payload)
		return lost || m.loses(n)
	})
}

// loses reports whether the network loses packet n.
func (m *mutated) loses(n int) bool { return m.scenario == "lossy" && n < 40 && n%5 == 4 }

// exchange lets the programs exchange their messages.
func (m *mutated) exchange() {
	if m.scenario == "refused" {
		m.QA.Post(enginetest.Write(77, m.Guards[1], 0), m.Source.SGE(0, 2000))
	}
	m.Messages()
}

// changed returns a packet with a change.
func changed(t testing.TB, frame []byte, change *mutation) []byte {
	var f wire.Frame
	if err := f.Parse(frame, len(frame)); err != nil {
		t.Fatal(err)
	}
	payload := change.change(bytes.Clone(frame[f.PayloadOff:]))
	src, dst := f.Addrs()
	if change.from != nil {
		change.from(&src, &dst)
	}
	out := make([]byte, wire.UDP6HeaderLen+len(payload))
	out = out[:wire.PutUDP(out, src, dst, payload)]
	copy(out, frame[:12]) // Ethernet addresses
	if f.Type == wire.EtherTypeIPv4 {
		wire.SetUDPChecksum(out)
	}
	return out
}

// inject lets a packet arrive, with a change.
func (m *mutated) inject(frame []byte, change *mutation) { m.Inject(changed(m.T, frame, change)) }

// mutations returns the changes to a packet of the exchange.
func (m *mutated) mutations(payload []byte) []mutation {
	return mutations(payload, m.Keys())
}

// TestMutations changes each field of each packet of an exchange, including the handshake. The changed packet arrives
// instead of the packet, before it, right after it, or at the end.
func TestMutations(t *testing.T) {
	tries, stride := 0, mutationStride()
	for _, scenario := range scenarios {
		var packets [][]byte
		m := newMutated(t, scenario)
		m.packets(func(_ int, _, payload []byte) bool {
			packets = append(packets, bytes.Clone(payload))
			return false
		})
		m.exchange()
		m.Check()
		if scenario != "refused" {
			m.Right()
		}
		well := m.Well()
		if m.leave(); well != (scenario != "refused") || t.Failed() {
			t.Fatalf("the exchange itself goes wrong: %+v %+v", m.Done, m.Got)
		}
		seen := map[[3]byte]int{}
		for i, p := range packets {
			kind := [3]byte{p[8] >> 4}
			if len(p) > wire.TRPExtLen+1 && kind[0] == byte(wire.OpData) {
				kind[1], kind[2] = p[wire.TRPExtLen]&0xc0, p[wire.TRPExtLen+1]
			}
			if seen[kind]++; seen[kind] > 2 { // the first two of a kind represent the others
				continue
			}
			for k, c := range m.mutations(p) {
				for _, when := range []string{"instead", "before", "behind", "late"} {
					if tries++; tries%stride != 0 && (!c.rights || when != "instead" || scenario != "plain") {
						continue
					}
					t.Run(fmt.Sprintf("%s %d/%d %s", scenario, i, k, when), func(t *testing.T) { mutate(t, scenario, i, k, when) })
				}
			}
		}
	}
	t.Logf("%d changes", tries)
}

// mutate runs an exchange with packet i changed in way k.
func mutate(t *testing.T, scenario string, i, k int, when string) {
	m := newMutated(t, scenario)
	var change mutation
	var packet []byte
	m.packets(func(n int, frame, payload []byte) (lost bool) {
		if n != i {
			return false
		}
		packet = bytes.Clone(frame)
		all := m.mutations(payload)
		change = all[k%len(all)]
		switch when {
		case "instead":
			m.inject(packet, &change)
			return true
		case "before": // the packet itself follows
			m.inject(packet, &change)
			m.inject(packet, &mutation{change: unchanged})
			return true
		case "behind":
			m.inject(packet, &change)
		}
		return false
	})
	m.exchange()
	seen := change // the zero value if it is a packet of the end
	if when == "late" && packet != nil {
		m.inject(packet, &change)
		m.Pass(time.Second)
		m.Settle(0, 0)
	}
	if scenario == "lossy" && !seen.segment && !seen.foreign { // a lost packet that was acknowledged is never sent again
		m.end()
	}
	m.Check()
	duplicate := seen.segment && (scenario == "plain" && when == "behind" || when == "late")
	if scenario != "refused" && (duplicate || seen.foreign) {
		if !m.Well() {
			t.Errorf("%+v %+v", m.Done, m.Got)
		} else {
			m.Right()
		}
	}
	if m.leave(); t.Failed() {
		t.Errorf("packet %x: %s", packet[wire.UDPHeaderLen:][:min(70, len(packet)-wire.UDPHeaderLen)], change.name)
	}
}

// end lets both programs end the connection, which completes everything that they have posted.
func (m *mutated) end() {
	for _, q := range []*enginetest.QP{m.QA, m.QB} {
		if err := q.Modify(abi.QPSErr); err != nil {
			m.T.Error(err)
		}
	}
	m.Settle(0, 0)
}

// leave ends the connection, of which nothing may be left then.
func (m *mutated) leave() {
	m.T.Helper()
	m.end()
	m.QA.Destroy()
	m.QB.Destroy()
	m.Pass(30 * time.Second)
	m.CheckQuiet()
}
