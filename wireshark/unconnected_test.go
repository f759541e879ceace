package wireshark

import (
	"encoding/binary"
	"strings"
	"testing"

	"urdma/wire"
)

// unconnectedPackets are a datagram and parts of messages of type UC, with their expected display.
func unconnectedPackets() (packets []packet, info []string) {
	from, to := end{wire.IPv4{10, 0, 0, 1}, wire.DatagramPort}, end{wire.IPv4{10, 0, 0, 2}, wire.DatagramPort}
	imm := binary.NativeEndian.Uint32([]byte{1, 2, 3, 4})
	ud := make([]byte, wire.DatagramLen+5)
	(&wire.Datagram{PSN: 7, Dst: 0xabcdef, Src: 0x123456, QKey: 0x11111111, HasImmediate: true, Immediate: imm}).Put(ud)
	packets = append(packets, whole(from, to, ud))
	info = append(info, "Datagram 123456 → abcdef, 5 bytes")
	for _, u := range []wire.UC{
		{PSN: 1, Dst: 2, Src: 3, First: true},
		{PSN: 2, Dst: 2, Src: 3, Last: true, Write: true, STag: 9, TO: 1 << 40, HasImmediate: true, Immediate: imm,
			Solicited: true},
	} {
		b := make([]byte, wire.MaxUCLen+10)
		n := u.Put(b)
		packets = append(packets, whole(from, to, b[:n+10]))
		info = append(info, "UC 000003 → 000002, 10 bytes")
	}
	return packets, info
}

// TestUnconnected: messages that belong to no connection are recognized by themselves.
func TestUnconnected(t *testing.T) {
	packets, want := unconnectedPackets()
	path := writeCapture(t, "", packets)
	for i, got := range info(t, path) {
		if !strings.Contains(got, want[i]) {
			t.Errorf("packet %d: %q, expected %q", i, got, want[i])
		}
	}
	rows := columns(t, path, []string{"trp.dst_qpn", "trp.src_qpn", "trp.qkey", "trp.uc.stag", "trp.uc.to",
		"trp.message.imm"})
	for i, want := range []string{"0x00abcdef 0x00123456 0x11111111   01020304", "0x00000002 0x00000003    ",
		"0x00000002 0x00000003  0x00000009 0x0000010000000000 01020304"} {
		if s := strings.Join(rows[i], " "); s != want {
			t.Errorf("packet %d: %q, expected %q", i, s, want)
		}
	}
	for _, byCapture := range []bool{true, false} {
		path := writeCapture(t, "", shortened(packets, byCapture))
		for _, args := range views {
			if out := tshark(t, path, args...); byCapture && strings.Contains(out, "Malformed") {
				t.Error("a cut packet is called malformed")
			}
		}
	}
}

// TestResolve: questions and answers of rdma_cm's port spaces for datagrams are recognized; answers without a block,
// which are refusals, by their question. Rejects show the reason.
func TestResolve(t *testing.T) {
	from, to := end{wire.IPv4{10, 0, 0, 1}, 40000}, end{wire.IPv4{10, 0, 0, 2}, 7471}
	build := func(from, to end, h wire.TRP, c wire.TRPConnect) packet {
		b := make([]byte, wire.TRPLen+c.Len())
		if _, err := c.Put(b[h.Put(b):]); err != nil {
			t.Fatal(err)
		}
		return whole(from, to, b)
	}
	block := func(qpn wire.QPN, qkey uint32) wire.TRPConnect {
		return wire.TRPConnect{HasExt: true, Ext: wire.TRPExtension{QPN: qpn, Cookie: qkey}, PrivateData: []byte("hi")}
	}
	packets := []packet{
		build(from, to, wire.TRP{Op: wire.OpResolve, PSN: 77}, block(0, 0)),
		build(to, from, wire.TRP{Op: wire.OpResolved, Ack: 77}, block(0xabcdef, 0x01234567)),
		build(from, to, wire.TRP{Op: wire.OpResolve, PSN: 78}, block(0x123456, 0)),
		build(to, from, wire.TRP{Op: wire.OpResolved, Ack: 78}, wire.TRPConnect{IRD: 1}),
		build(from, to, wire.TRP{Op: wire.OpResolve, PSN: 79}, block(0x123456, 0)),
		build(to, from, wire.TRP{Op: wire.OpResolved, Ack: 79}, wire.TRPConnect{IRD: 2}),
		build(from, to, wire.TRP{Op: wire.OpRequest, PSN: 80}, block(0x123456, 0)),
		build(to, from, wire.TRP{Op: wire.OpReject, Ack: 80}, wire.TRPConnect{IRD: 8}),
		build(from, to, wire.TRP{Op: wire.OpRequest, PSN: 81}, block(0x123456, 0)),
		build(to, from, wire.TRP{Op: wire.OpReject, Ack: 81}, wire.TRPConnect{IRD: 28}),
	}
	path := writeCapture(t, "", packets)
	want := []string{"Resolve PSN=77", "Resolved PSN=0 Ack=77 IRD=0 ORD=0 QPN=0xabcdef", "QPN=0x123456 Private=2",
		"Resolved PSN=0 Ack=78 nobody listens",
		"Resolve PSN=79", "Resolved PSN=0 Ack=79 rejected", "Request PSN=80", "Reject PSN=0 Ack=80 nobody listens",
		"Request PSN=81", "Reject PSN=0 Ack=81 the program refuses"}
	for i, got := range info(t, path) {
		if !strings.Contains(got, want[i]) {
			t.Errorf("packet %d: %q, expected %q", i, got, want[i])
		}
	}
	for i, row := range columns(t, path, []string{"trp.analysis.request_in"}) {
		if answer := i%2 == 1; answer != (row[0] != "") {
			t.Errorf("packet %d answers %q", i, row[0])
		}
	}
}
