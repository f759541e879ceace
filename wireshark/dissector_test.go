package wireshark

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"urdma/wire"
)

// Numbers of the connection in most tests.
const (
	isnR, isnA       = wire.PSN(0xfffffffe), wire.PSN(1000) // R's PSN wraps soon
	cookieR, cookieA = 0x11112222, 0xaaaabbbb
)

// handshake sets up a connection.
func handshake() []packet {
	request := wire.TRPConnect{IRD: 16, ORD: 8, PrivateData: []byte("hello"), HasExt: true,
		Ext: wire.TRPExtension{Cookie: cookieR, QPN: 0x12, MaxSegment: 1400, RecvWindow: 256, Capabilities: 0}}
	accept := wire.TRPConnect{IRD: 4, ORD: 2, HasExt: true,
		Ext: wire.TRPExtension{Cookie: cookieA, QPN: 0x34, MaxSegment: 8192, RecvWindow: 64, Capabilities: wire.CapXRC}}
	return []packet{
		whole(endR, endL, connect(wire.TRP{PSN: isnR, Op: wire.OpRequest}, request)),
		whole(endA, endR, connect(wire.TRP{PSN: isnA, Ack: isnR, Op: wire.OpAccept}, accept)),
	}
}

// kind is one kind of packet from R to A, with tshark's expected output. Fields that begin with iwarp come from
// Wireshark's own dissector.
type kind struct {
	name string
	trp  wire.TRP
	body []byte
	want map[string]string
}

// ddpOf adds the fields of every segment, from both dissectors.
func ddpOf(d wire.DDP, length int, more map[string]string) map[string]string {
	want := map[string]string{
		"trp.ddp.op": fmt.Sprint(uint8(d.Op)), "trp.ddp.tagged": truth(d.Tagged), "trp.ddp.last": truth(d.Last),
		"trp.ddp.stag": fmt.Sprintf("0x%08x", uint32(d.STag)), "trp.ddp.len": fmt.Sprint(length),
		"iwarp_rdma.opcode": fmt.Sprintf("0x%02x", uint8(d.Op)), "iwarp_ddp.tagged_flag": truth(d.Tagged),
		"iwarp_ddp.last_flag": truth(d.Last),
	}
	if d.Tagged {
		want["trp.ddp.to"] = fmt.Sprintf("0x%016x", d.TO)
		want["iwarp_ddp.tagged_offset"] = want["trp.ddp.to"]
		want["iwarp_ddp.stag"] = want["trp.ddp.stag"]
	} else {
		want["trp.ddp.qn"], want["trp.ddp.msn"], want["trp.ddp.mo"] = fmt.Sprint(d.QN), fmt.Sprint(uint32(d.MSN)),
			fmt.Sprint(d.MO)
		want["iwarp_ddp.qn"], want["iwarp_ddp.msn"], want["iwarp_ddp.mo"] = want["trp.ddp.qn"], want["trp.ddp.msn"],
			want["trp.ddp.mo"]
	}
	for k, v := range more {
		want[k] = v
	}
	return want
}

func truth(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// segmentKind is a data packet with this segment.
func segmentKind(name string, d wire.DDP, body []byte, more map[string]string) kind {
	return kind{name: name, body: segment(d, body), want: ddpOf(d, len(body), more)}
}

// keptFromReader returns the kind without the fields of Wireshark's own dissector.
func (k kind) keptFromReader() kind {
	for name := range k.want {
		if strings.HasPrefix(name, "iwarp") {
			k.want[name] = ""
		}
	}
	return k
}

func sendKinds() []kind {
	payload := []byte("sixteen bytes ..")
	return []kind{
		segmentKind("Send", wire.DDP{Op: wire.OpSend, Last: true, MSN: 1}, payload, map[string]string{"data.len": "16"}),
		segmentKind("Send, first segment", wire.DDP{Op: wire.OpSend, MSN: 1}, payload, nil).keptFromReader(),
		segmentKind("Send, last segment", wire.DDP{Op: wire.OpSend, Last: true, MSN: 1, MO: 16}, payload,
			nil).keptFromReader(),
		segmentKind("Send SE, first segment", wire.DDP{Op: wire.OpSendSE, MSN: 1}, payload, nil),
		segmentKind("Send SE, last segment", wire.DDP{Op: wire.OpSendSE, Last: true, MSN: 1, MO: 16}, payload,
			map[string]string{"iwarp_rdma.send.reassembled.length": "32"}),
		segmentKind("Send, short", wire.DDP{Op: wire.OpSend, Last: true, MSN: 2}, []byte("short"),
			map[string]string{"data.data": "73686f7274"}).keptFromReader(),
		segmentKind("Send, empty", wire.DDP{Op: wire.OpSend, Last: true, MSN: 2}, nil, nil).keptFromReader(),
		segmentKind("Send SE", wire.DDP{Op: wire.OpSendSE, Last: true, MSN: 3}, payload[:3],
			map[string]string{"data.data": "736978"}),
		segmentKind("Send Inv", wire.DDP{Op: wire.OpSendInv, Last: true, MSN: 4, STag: 0x1234}, payload,
			map[string]string{"iwarp_rdma.inval_stag": "4660"}),
		segmentKind("Send SE Inv", wire.DDP{Op: wire.OpSendSEInv, Last: true, MSN: 5, STag: 0x1235}, payload,
			map[string]string{"iwarp_rdma.inval_stag": "4661"}),
		segmentKind("Immediate", wire.DDP{Op: wire.OpImmediate, Last: true, MSN: 6},
			body(&wire.Immediate{0xde, 0xad, 0xbe, 0xef}, 8),
			map[string]string{"trp.imm": "deadbeef00000000", "trp.imm.data": "0xdeadbeef"}),
		segmentKind("Immediate SE", wire.DDP{Op: wire.OpImmediateSE, Last: true, MSN: 7},
			body(&wire.Immediate{1, 2, 3, 4}, 8), map[string]string{"trp.imm.data": "0x01020304"}),
	}
}

func taggedKinds() []kind {
	read := wire.ReadRequest{SinkSTag: 0x77, SinkTO: 0x8899, Length: 4096, SrcSTag: 0xabcdef01, SrcTO: 0x7fff12345678}
	return []kind{
		segmentKind("Write", wire.DDP{Tagged: true, Op: wire.OpWrite, STag: 0xdeadbe00, TO: 0x7ffff0000000},
			make([]byte, 1024),
			map[string]string{"data.len": "1024"}),
		segmentKind("Write, last", wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 0xdeadbe00, TO: 0x7ffff0000400},
			[]byte{1}, nil),
		segmentKind("Read Request", wire.DDP{Op: wire.OpReadRequest, Last: true, QN: 1, MSN: 1}, body(&read, 28),
			map[string]string{
				"iwarp_rdma.sinkstag": "0x00000077", "iwarp_rdma.sinkto": "0x0000000000008899", "iwarp_rdma.rdmardsz": "4096",
				"iwarp_rdma.srcstag": "0xabcdef01", "iwarp_rdma.srcto": "0x00007fff12345678",
			}),
		segmentKind("Read Response", wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 0x77, TO: 0x8899},
			make([]byte, 100),
			map[string]string{"data.len": "100"}),
	}
}

func atomicKind(name string, op wire.AtomicOp, more map[string]string) kind {
	request := wire.AtomicRequest{Opcode: op, RequestID: 9, STag: 0x42, TO: 0x1000, Data: 0x11, Mask: 0x22, Compare: 0x33,
		CompareMask: 0x44}
	want := map[string]string{
		"trp.atomic.op": fmt.Sprint(uint8(op)), "trp.atomic.id": "9", "trp.atomic.stag": "0x00000042",
		"trp.atomic.to":   "0x0000000000001000",
		"trp.atomic.data": "0x0000000000000011", "trp.atomic.mask": "0x0000000000000022",
		"iwarp_rdma.atomic.remote_stag": "66",
	}
	for k, v := range more {
		want[k] = v
	}
	return segmentKind(name, wire.DDP{Op: wire.OpAtomicRequest, Last: true, QN: 1, MSN: 2}, body(&request, 52), want)
}

func atomicKinds() []kind {
	response := wire.AtomicResponse{RequestID: 9, Original: 0x5555}
	return []kind{
		atomicKind("FetchAdd", wire.AtomicFetchAdd, map[string]string{"trp.atomic.compare": "", "trp.reader": ""}),
		atomicKind("Swap", wire.AtomicSwap, map[string]string{"trp.atomic.compare": "", "trp.reader": "1"}),
		atomicKind("CmpSwap", wire.AtomicCmpSwap, map[string]string{
			"trp.atomic.compare": "0x0000000000000033", "trp.atomic.compare_mask": "0x0000000000000044", "trp.reader": ""}),
		segmentKind("Atomic Response", wire.DDP{Op: wire.OpAtomicResponse, Last: true, QN: 3, MSN: 1}, body(&response, 12),
			map[string]string{"trp.atomic.id": "9", "trp.atomic.original": "0x0000000000005555"}),
	}
}

// terminateKind is a Terminate for a refused segment; misread means that Wireshark's own dissector assumes a wrong
// length of its headers.
func terminateKind(name string, code wire.TermCode, refused wire.DDP, read *wire.ReadRequest,
	more map[string]string) kind {
	m := wire.Terminate{Code: code, HasDDPLen: true, SegmentLen: 46, DDPHeader: segment(refused, nil)}
	if refused.Tagged {
		m.DDPHeader = m.DDPHeader[:wire.TaggedLen]
	}
	if read != nil {
		m.ReadRequest = body(read, 28)
	}
	b := terminate(m)
	want := map[string]string{
		"trp.term.code": fmt.Sprintf("0x%04x", uint16(code)), "trp.term.layer": fmt.Sprint(code.Layer()),
		"trp.term.type":  fmt.Sprint(code.Type()),
		"trp.term.error": fmt.Sprintf("0x%04x", code.Code()), "trp.term.cause": code.String(), "trp.term.seglen": "46",
		"trp.term.m": "1", "trp.term.d": "1", "trp.term.r": truth(read != nil),
		"trp.term.ddp.op": fmt.Sprint(uint8(refused.Op)), "trp.term.ddp.tagged": truth(refused.Tagged),
	}
	for k, v := range more {
		want[k] = v
	}
	return segmentKind(name, wire.DDP{Op: wire.OpTerminate, Last: true, QN: 2, MSN: 1}, b, want)
}

func terminateKinds() []kind {
	read := wire.ReadRequest{SinkSTag: 0x77, SinkTO: 0x8899, Length: 4096, SrcSTag: 0xabcdef01, SrcTO: 0x7fff12345678}
	write := wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 0xbad, TO: 0x10}
	kinds := []kind{
		terminateKind("Terminate of a Write", wire.TermTaggedSTag, write, nil, map[string]string{
			"trp.term.ddp.stag": "0x00000bad", "trp.term.ddp.to": "0x0000000000000010", "trp.reader": "",
			"iwarp_rdma.term_errcode_ddp_tagged": "0x00"}),
		terminateKind("Terminate of a Send", wire.TermUntaggedNoBuffer, wire.DDP{Op: wire.OpSend, Last: true, MSN: 17, MO: 0},
			nil,
			map[string]string{"trp.term.ddp.qn": "0", "trp.term.ddp.msn": "17", "trp.term.ddp.mo": "0", "trp.reader": ""}),
		terminateKind("Terminate of a Read Request", wire.TermProtectionBounds,
			wire.DDP{Op: wire.OpReadRequest, Last: true, QN: 1, MSN: 3}, &read,
			map[string]string{"trp.term.read.sink_stag": "0x00000077", "trp.term.read.sink_to": "0x0000000000008899",
				"trp.term.read.len":      "4096",
				"trp.term.read.src_stag": "0xabcdef01", "trp.term.read.src_to": "0x00007fff12345678", "trp.reader": "1"}),
		// Wireshark's own dissector needs four more bytes than there are.
		terminateKind("Terminate of a Write, as unexpected", wire.TermOperationOpcode, write, nil,
			map[string]string{"trp.reader": "1"}),
	}
	kinds[3] = kinds[3].keptFromReader()
	bare := wire.DDP{Op: wire.OpTerminate, Last: true, QN: 2, MSN: 1}
	return append(kinds, segmentKind("Terminate, bare", bare, terminate(wire.Terminate{Code: wire.TermRDMAPCatastrophic}),
		map[string]string{"trp.term.cause": "RDMAP local catastrophic error", "trp.term.seglen": "", "trp.term.ddp.op": ""}))
}

// emptyKinds are the kinds without a segment.
func emptyKinds() []kind {
	kinds := []kind{
		{name: "ack", want: map[string]string{"trp.ddp.op": "", "iwarp_rdma.opcode": ""}},
		{name: "fin", trp: wire.TRP{Op: wire.OpFin}, want: map[string]string{"trp.op": "4"}},
	}
	return append(kinds,
		kind{name: "probe", trp: wire.TRP{Flags: wire.FlagAckRequested}, want: map[string]string{"trp.flags.ar": "1"}},
		kind{name: "sack", trp: wire.TRP{Op: wire.OpSack},
			body: runs(wire.SackRun{First: isnA + 12, End: isnA + 15}, wire.SackRun{First: isnA + 6, End: isnA + 7}),
			want: map[string]string{"trp.sack.count": "2", "trp.sack.first": "1012,1006", "trp.sack.end": "1015,1007"}})
}

// allKinds returns every kind of packet of an established connection, with segments in the order of their PSN.
func allKinds() []kind {
	kinds := slices.Concat(sendKinds(), taggedKinds(), atomicKinds(), terminateKinds(), emptyKinds())
	psn := isnR
	for i := range kinds {
		k := &kinds[i]
		k.trp.PSN, k.trp.Ack, k.trp.Credits, k.trp.Cookie = psn, isnA+5, 200, cookieA
		if k.trp.Op == wire.OpData && k.body != nil {
			psn++
		}
		k.addHeader()
	}
	return kinds
}

// addHeader adds the fields of the TRP header.
func (k *kind) addHeader() {
	k.want["trp.psn"], k.want["trp.ack"] = fmt.Sprint(uint32(k.trp.PSN)), fmt.Sprint(uint32(k.trp.Ack))
	k.want["trp.psn_rel"] = fmt.Sprint(k.trp.PSN.Sub(isnR))
	k.trp.Credits = 1<<16 + 200
	k.want["trp.op"], k.want["trp.credits"], k.want["trp.flags.credits"] = fmt.Sprint(uint8(k.trp.Op)), "65736", "16"
	k.want["trp.malformed"], k.want["trp.refused"], k.want["_ws.malformed"] = "", "", ""
	k.want["trp.cookie"] = fmt.Sprintf("0x%08x", uint32(cookieA))
	k.want["trp.flags.ar"] = truth(k.trp.Flags != 0)
}

func (k *kind) packet() packet {
	return whole(endR, endA, header(k.trp, k.body))
}

// TestFields: every field of every kind of packet has the value that was written, with and without the handshake
// before it.
func TestFields(t *testing.T) {
	kinds := allKinds()
	t.Run("handshake", func(t *testing.T) { checkKinds(t, handshake(), kinds) })
	t.Run("no handshake", func(t *testing.T) { checkKinds(t, nil, kinds) })
}

func checkKinds(t *testing.T, first []packet, kinds []kind) {
	packets := slices.Clone(first)
	var names []string
	for _, k := range kinds {
		packets = append(packets, k.packet())
		for name := range k.want {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	path := writeCapture(t, byAnother, packets)
	for _, args := range [][]string{nil, {"-2"}} {
		rows := columns(t, path, names, args...)
		if len(rows) != len(packets) {
			t.Fatalf("%d rows for %d packets", len(rows), len(packets))
		}
		for i, k := range kinds {
			checkRow(t, fmt.Sprint(k.name, args), names, rows[len(first)+i], k.want)
		}
	}
}

func checkRow(t *testing.T, what string, names, row []string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := row[slices.Index(names, name)]; got != value {
			t.Errorf("%s: %s is %q, want %q", what, name, got, value)
		}
	}
}

// TestHandshakeFields: request, accept and reject.
func TestHandshakeFields(t *testing.T) {
	reject := whole(endL, endR, connect(wire.TRP{Ack: isnR, Op: wire.OpReject},
		wire.TRPConnect{PrivateData: []byte{1, 2, 3}}))
	want := []map[string]string{{
		"trp.op": "1", "trp.psn": "4294967294", "trp.ack": "0", "trp.connect.private_len": "5", "trp.connect.ird": "16",
		"trp.connect.ord":     "8",
		"trp.connect.private": "68656c6c6f", "trp.connect.ext.magic": "0x7552", "trp.connect.ext.version": "1",
		"trp.connect.ext.len":    "20",
		"trp.connect.ext.cookie": "0x11112222", "trp.connect.ext.qpn": "0x00000012", "trp.connect.ext.max_segment": "1400",
		"trp.connect.ext.window": "256", "trp.connect.ext.capabilities": "0x00000000", "trp.analysis.answer_in": "2",
		"trp.cookie": "",
	}, {
		"trp.op": "2", "trp.psn": "1000", "trp.ack": "4294967294", "trp.connect.private_len": "0", "trp.connect.ird": "4",
		"trp.connect.ord":     "2",
		"trp.connect.private": "", "trp.connect.ext.cookie": "0xaaaabbbb", "trp.connect.ext.qpn": "0x00000034",
		"trp.connect.ext.max_segment": "8192", "trp.connect.ext.window": "64", "trp.connect.ext.capabilities": "0x00000004",
		"trp.analysis.request_in": "1", "trp.analysis.answer_in": "",
	}, {
		"trp.op": "3", "trp.psn": "0", "trp.ack": "4294967294", "trp.connect.private_len": "3",
		"trp.connect.private":   "010203",
		"trp.connect.ext.magic": "", "trp.analysis.request_in": "1", "trp.reject": "1",
	}}
	names := handshakeNames(want)
	rows := columns(t, writeCapture(t, byAnother, append(handshake(), reject)), names, "-2")
	for i, row := range rows {
		checkRow(t, fmt.Sprintf("packet %d", i+1), names, row, want[i])
	}
}

func handshakeNames(want []map[string]string) []string {
	var names []string
	for _, w := range want {
		for name := range w {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestRetry: the retry, which asks for proof of an address, and the request with the proof.
func TestRetry(t *testing.T) {
	ext := wire.TRPExtension{Cookie: cookieR, QPN: 0x12, MaxSegment: 1400, RecvWindow: 256}
	request := whole(endR, endL, connect(wire.TRP{PSN: isnR, Op: wire.OpRequest},
		wire.TRPConnect{HasExt: true, Ext: ext, Padding: 50}))
	retry := whole(endL, endR, connect(wire.TRP{Ack: isnR, Op: wire.OpRetry},
		wire.TRPConnect{HasExt: true, Ext: wire.TRPExtension{Echo: 0xabcd}}))
	ext.Echo = 0xabcd
	again := whole(endR, endL, connect(wire.TRP{PSN: isnR, Op: wire.OpRequest}, wire.TRPConnect{HasExt: true, Ext: ext}))
	accept := handshake()[1]
	names := []string{"trp.op", "trp.connect.ext.echo", "trp.connect.ext.target", "trp.connect.ext.capabilities",
		"trp.analysis.request_in", "trp.analysis.answer_in", "trp.malformed"}
	want := [][]string{
		{"1", "", "", "0x00000000", "", "4", ""},
		{"7", "0x0000abcd", "0x00000000", "0x00000000", "1", "", ""},
		{"1", "0x0000abcd", "0x00000000", "0x00000000", "", "", ""},
		{"2", "", "", "0x00000004", "1", "", ""},
	}
	for i, row := range columns(t, writeCapture(t, byAnother, []packet{request, retry, again, accept}), names, "-2") {
		if !slices.Equal(row, want[i]) {
			t.Errorf("packet %d: got %q, want %q", i+1, row, want[i])
		}
	}
}

// TestLongerBlock: the known fields of a longer block of version 1 are shown, and the rest is named.
func TestLongerBlock(t *testing.T) {
	c := wire.TRPConnect{IRD: 1, ORD: 1, HasExt: true,
		Ext: wire.TRPExtension{Cookie: 5, QPN: 6, MaxSegment: 1400, RecvWindow: 7}}
	b := append(connect(wire.TRP{PSN: 9, Op: wire.OpRequest}, c), 1, 2, 3, 4, 5, 6, 7, 8, 0xee)
	b[wire.TRPLen+6+3] = 28
	names := []string{"trp.connect.ext.window", "trp.connect.ext.rest", "trp.trailer", "trp.malformed"}
	rows := columns(t, writeCapture(t, byAnother, []packet{whole(endR, endL, b)}), names)
	if want := []string{"7", "0102030405060708", "ee", ""}; !slices.Equal(rows[0], want) {
		t.Errorf("got %q, want %q", rows[0], want)
	}
}

// TestNumberBlock: the fields of a block that connects by queue pair number.
func TestNumberBlock(t *testing.T) {
	ext := wire.TRPExtension{Cookie: cookieR, QPN: 0x12, MaxSegment: 1400, RecvWindow: 256, Target: 0x34, Echo: 5,
		MinRNRTimer: 12, PathMTU: 3, RQPSN: 0xabcdef}
	b := connect(wire.TRP{PSN: isnR, Op: wire.OpRequest}, wire.TRPConnect{IRD: 1, HasExt: true, Ext: ext})
	names := []string{"trp.connect.ext.target", "trp.connect.ext.echo", "trp.connect.ext.min_rnr_timer",
		"trp.connect.ext.path_mtu", "trp.connect.ext.rq_psn", "trp.connect.ext.rest", "trp.malformed"}
	rows := columns(t, writeCapture(t, byAnother, []packet{whole(endR, endL, b)}), names)
	if want := []string{"0x00000034", "0x00000005", "12", "3", "0xabcdef", "", ""}; !slices.Equal(rows[0], want) {
		t.Errorf("got %q, want %q", rows[0], want)
	}
}

// TestCauses: the causes of Terminates have the names of package wire.
func TestCauses(t *testing.T) {
	var packets []packet
	var want []string
	d := wire.DDP{Op: wire.OpTerminate, Last: true, QN: 2, MSN: 1}
	add := func(code wire.TermCode) {
		h := wire.TRP{PSN: wire.PSN(len(packets)), Ack: 1, Cookie: 1}
		packets = append(packets, whole(endR, endA, header(h, segment(d, terminate(wire.Terminate{Code: code})))))
		want = append(want, code.String())
	}
	for layer := range wire.TermCode(4) {
		for kind := range wire.TermCode(4) {
			for code := range wire.TermCode(12) {
				add(layer<<12 | kind<<8 | code)
			}
			add(layer<<12 | kind<<8 | 0xff)
		}
	}
	for i, row := range columns(t, writeCapture(t, byAnother, packets), []string{"trp.term.cause"}) {
		if row[0] != want[i] {
			t.Errorf("cause is %q, want %q", row[0], want[i])
		}
	}
}

// TestOpcodeNames: the opcodes have the names of package wire.
func TestOpcodeNames(t *testing.T) {
	script, err := os.ReadFile("trp.lua")
	if err != nil {
		t.Fatal(err)
	}
	for op := wire.OpWrite; op <= wire.OpAtomicResponse; op++ {
		if !strings.Contains(string(script), fmt.Sprintf("[%d] = { name = %q", op, op.String())) {
			t.Errorf("trp.lua doesn't call opcode %d %q", op, op)
		}
	}
}

// TestJSON: -T json is JSON, with TRP and Wireshark's own layer side by side.
func TestJSON(t *testing.T) {
	kinds := taggedKinds()
	kinds[0].trp = wire.TRP{PSN: 3, Ack: 4, Credits: 5, Cookie: 6}
	out := tshark(t, writeCapture(t, byAnother, []packet{kinds[0].packet()}), "-T", "json")
	var frames []struct {
		Source struct {
			Layers struct {
				TRP   map[string]any `json:"trp"`
				IWARP map[string]any `json:"iwarp_ddp_rdmap"`
			} `json:"layers"`
		} `json:"_source"`
	}
	if err := json.Unmarshal([]byte(out), &frames); err != nil {
		t.Fatal(err)
	}
	layers := frames[0].Source.Layers
	if layers.TRP["trp.psn"] != "3" || layers.IWARP["iwarp_ddp"] == nil {
		t.Errorf("got %s", out)
	}
}
