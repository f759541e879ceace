package wireshark

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urdma/wire"
)

// TestEmptyPackets: an acknowledgement is recognized in a capture of urdma, after a handshake or a segment, and if
// the user chooses TRP.
func TestEmptyPackets(t *testing.T) {
	c := talk{}
	c.a(0, 5, nil)
	c.r(0, 0, write(0, true))
	c.a(0, 1, nil)
	for _, run := range []struct {
		description string
		args        []string
		want        []string
	}{
		{byAnother, nil, []string{"UDP", "Data PSN=0 Write Last STag=0xdeadbe00 TO=0x0 Len=1024", "Ack=1 Credits=64"}},
		{byUrdma, nil, []string{"Ack=3 Credits=64", "Data PSN=0 Write Last STag=0xdeadbe00 TO=0x0 Len=1024",
			"Ack=1 Credits=64"}},
		{byAnother, []string{"-d", "udp.port==40001,trp"},
			[]string{"Ack=3 Credits=64", "Data PSN=0 Write Last STag=0xdeadbe00 TO=0x0 Len=1024", "Ack=1 Credits=64"}},
	} {
		for _, passes := range [][]string{nil, {"-2"}} {
			got := info(t, writeCapture(t, run.description, c.packets), append(passes, run.args...)...)
			if !slices.Equal(got, run.want) {
				t.Errorf("%s %v:\n got %q\nwant %q", run.description, run.args, got, run.want)
			}
		}
	}
}

// TestForeignPort: a conversation that was recognized by its handshake is TRP even on a port number that Wireshark
// assigns to another protocol.
func TestForeignPort(t *testing.T) {
	at := func(e end) end {
		if e == endR {
			e.port = 5060 // SIP
		}
		return e
	}
	c := talk{packets: handshake()}
	c.r(0, 0, write(0, true))
	c.a(0, 1, nil)
	for i, p := range c.packets {
		c.packets[i].from, c.packets[i].to = at(p.from), at(p.to)
	}
	got := info(t, writeCapture(t, byAnother, c.packets))
	if len(got) != 4 || !strings.HasPrefix(got[2], "Data PSN=0 Write") || got[3] != "Ack=1 Credits=64" {
		t.Errorf("got %q", got)
	}
}

// layer is gopacket's interface for writing other protocols.
func layer(l gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		l); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func dns(response bool, id uint16) []byte {
	q := layers.DNSQuestion{Name: []byte("www.example.org"), Type: layers.DNSTypeA, Class: layers.DNSClassIN}
	m := &layers.DNS{ID: id, RD: true, QR: response, Questions: []layers.DNSQuestion{q}}
	if response {
		m.Answers = []layers.DNSResourceRecord{{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 300,
			IP: net.IPv4(192, 0, 2, 1)}}
	}
	return layer(m)
}

// foreign returns datagrams of other protocols, with their ports.
func foreign() map[string]packet {
	from := end{wire.IPv4{192, 0, 2, 7}, 54320}
	to := func(port uint16, b []byte) packet {
		from.port++ // each has its own conversation, since Wireshark remembers a conversation's protocol
		return whole(from, end{wire.IPv4{192, 0, 2, 8}, port}, b)
	}
	inner := whole(end{wire.IPv4{10, 9, 0, 1}, 40001}, end{wire.IPv4{10, 9, 0, 2}, 50002}, make([]byte, 40))
	rtp := append(unhex("80 00 92 db 00 00 00 a0 3d cc 8b 1b"), bytes.Repeat([]byte{0xd5}, 160)...)
	return map[string]packet{
		"DNS query":    to(53, dns(false, 1)),
		"DNS response": to(53, dns(true, 0x4000)),
		"mDNS":         to(5353, dns(true, 0)),
		"DHCP": to(67, layer(&layers.DHCPv4{Operation: layers.DHCPOpRequest, HardwareType: layers.LinkTypeEthernet,
			HardwareLen: 6, Xid: 0x3903f326,
			ClientHWAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1},
			Options:      layers.DHCPOptions{layers.NewDHCPOption(layers.DHCPOptMessageType, []byte{1})}})),
		"NTP client": to(123, layer(&layers.NTP{Version: 4, Mode: 3, TransmitTimestamp: 0xe1a2b3c4d5e6f708})),
		"NTP server": to(123, layer(&layers.NTP{Version: 4, Mode: 4, Stratum: 2, Poll: 6, RootDelay: 0x1000,
			RootDispersion: 0x4000, ReferenceID: 0xc0000201})),
		// RFC 9001, appendix A.2: the protected packet's first bytes.
		"QUIC initial": to(443, append(unhex(`c0 00 00 00 01 08 83 94 c8 f0 3e 51 57 08 00 00 44 9e 7b 9a ec 34 d1 b1 c9 8d d7 68 9f b8 ec 11
			d2 42 b1 23 dc 9b d8 ba b9 36 b4 7d 92 ec 35 6c 0b ab 7d f5 97 6d 27 cd`), make([]byte, 1144)...)),
		// RFC 9001, appendix A.5: a short header packet.
		"QUIC short": to(443, unhex("4c fe 41 89 65 5e 5c d5 5c 41 f6 90 80 57 5d 79 99 c2 5a 5b fb")),
		"SIP":        to(5060, []byte("OPTIONS sip:bob@example.org SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK7\r\nContent-Length: 0\r\n\r\n")),
		"SIP ping":   to(5060, []byte("\r\n\r\n")),
		"RTP":        to(16384, rtp),
		"RTCP":       to(16385, unhex("80 c9 00 01 3d cc 8b 1b 81 ca 00 02 3d cc 8b 1b 01 01 61 00")),
		// RFC 5769, section 2.1: the beginning of the sample request, without the fingerprint.
		"STUN":      to(3478, unhex("00 01 00 00 21 12 a4 42 b7 e7 a7 01 bc 34 d6 86 fa 87 df ae")),
		"TFTP":      to(69, []byte("\x00\x01boot.img\x00octet\x00")),
		"SNMP":      to(161, unhex("30 26 02 01 01 04 06 70 75 62 6c 69 63 a0 19 02 01 01 02 01 00 02 01 00 30 0e 30 0c 06 08 2b 06 01 02 01 01 01 00 05 00")),
		"syslog":    to(514, []byte("<34>1 2003-10-11T22:14:15.003Z host su - ID47 - failed")),
		"WireGuard": to(51820, append([]byte{4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...)),
		"VXLAN":     to(4789, append([]byte{8, 0, 0, 0, 0, 0, 1, 0}, inner.frame()...)),
		"RoCEv2":    to(4791, unhex("04 40 ff ff 00 00 00 11 80 00 00 01 00 00 00 00 7f ff 00 00 00 00 12 34 00 00 04 00 01 02 03 04")),
		"zeros":     to(9, make([]byte, 64)),
		"ones":      to(9, bytes.Repeat([]byte{0xff}, 64)),
		"16 zeros":  to(9, make([]byte, 16)),
		"10 zeros":  to(9, make([]byte, 10)),
		"one byte":  to(9, []byte{0}),
		"text":      to(9, []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ")),
	}
}

// TestForeign: packets of other protocols are not taken for TRP, on their port numbers and on others, alone and next
// to a TRP connection.
func TestForeign(t *testing.T) {
	packets := handshake()
	names := []string{"request", "accept"}
	others := foreign()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		p := others[name]
		elsewhere := p
		elsewhere.to.port = 40124
		packets, names = append(packets, p, elsewhere), append(names, name, name+" elsewhere")
	}
	path := writeCapture(t, byAnother, packets)
	for i, row := range columns(t, path, []string{"frame.protocols"}) {
		if ours := strings.Contains(row[0], ":trp"); ours != (i < 2) {
			t.Errorf("%s is %s", names[i], row[0])
		}
	}
}

// TestForeignRandom: encrypted traffic is never taken for TRP.
func TestForeignRandom(t *testing.T) {
	r := newRand(t)
	var packets []packet
	for i := range 20000 {
		from, to := end{wire.IPv4{192, 0, 2, 7}, 40000 + uint16(i%5000)}, end{wire.IPv4{192, 0, 2, 8}, 443}
		packets = append(packets, whole(from, to, randBytes(r, 1+r.IntN(80))))
	}
	if out := tshark(t, writeCapture(t, byAnother, packets), "-Y", "trp"); out != "" {
		t.Errorf("taken for TRP:\n%s", out)
	}
}

// TestStrict: without a handshake, a segment with a single wrong field is not taken for TRP.
func TestStrict(t *testing.T) {
	good := header(wire.TRP{PSN: 5, Ack: 6, Credits: 7, Cookie: 8}, send(1, 0, true))
	for _, change := range []struct {
		what string
		at   int
		to   byte
	}{
		{"TRP opcode 6", 8, 0x60}, {"a reserved flag", 10, 0x01}, {"the last reserved flag", 10, 0x40},
		{"DDP version 2", 16, 0x42}, {"a reserved bit of DDP", 16, 0x45},
		{"RDMAP version 2", 17, 0x83}, {"a reserved bit of RDMAP", 17, 0x53}, {"RDMAP opcode 12", 17, 0x4c},
		{"tagged Send", 16, 0xc1},
		{"Send on queue 1", 25, 1}, {"MSN 0", 29, 0}, {"Terminate on queue 0", 17, 0x47},
	} {
		b := slices.Clone(good)
		if b[change.at] == change.to {
			t.Fatalf("%s: no change", change.what)
		}
		b[change.at] = change.to
		got := info(t, writeCapture(t, byAnother, []packet{whole(endR, endA, b)}))
		if !slices.Equal(got, []string{"UDP"}) {
			t.Errorf("%s: %q", change.what, got)
		}
	}
	if got := info(t, writeCapture(t, byAnother,
		[]packet{whole(endR, endA, good)})); got[0] != "Data PSN=0 Send Last MSN=1 MO=0 Len=100" {
		t.Errorf("unchanged: %q", got)
	}
}

// TestWrongSegments: in a known connection, segments that the receiver refuses are shown, with the reason.
func TestWrongSegments(t *testing.T) {
	c := talk{packets: handshake()}
	cases := []struct {
		change func(b []byte) []byte
		want   string
	}{
		{func(b []byte) []byte { b[0] = 0x42; return b }, "version of DDP or RDMAP is not 1"},
		{func(b []byte) []byte { b[1] = 0x83; return b }, "version of DDP or RDMAP is not 1"},
		{func(b []byte) []byte { b[1] = 0x4f; return b }, "RDMAP opcode above 11"},
		{func(b []byte) []byte { b[0] = 0xc1; return b }, "opcode belongs to the other buffer model"},
		{func(b []byte) []byte { b[9] = 2; return b }, "opcode does not belong on this queue"},
		{func(b []byte) []byte { b[1] = 0x48; b[0] = 0x01; return b }, "message of more than one segment"},
		{func(b []byte) []byte { b[1] = 0x48; return b }, "body is not as long as its opcode wants it"},
		{func(b []byte) []byte { return b[:17] }, "segment shorter than its header"},
	}
	for i, k := range cases {
		c.r(uint32(i), 0, k.change(send(1, 0, true)))
	}
	rows := columns(t, writeCapture(t, byAnother, c.packets), []string{"_ws.expert.message"})
	for i, k := range cases {
		if want := "Its receiver answers with a Terminate: " + k.want; !strings.Contains(rows[2+i][0], want) {
			t.Errorf("got %q, want %q", rows[2+i][0], want)
		}
	}
}

// TestWrongPackets: the same for packets that the receiver drops.
func TestWrongPackets(t *testing.T) {
	c := talk{packets: handshake()}
	run := runs(wire.SackRun{First: isnA.Add(9), End: isnA.Add(9)})
	c.say(true, wire.TRP{Op: wire.OpFin}, 0, 0, []byte{1})
	c.say(true, wire.TRP{Op: wire.OpSack}, 0, 0, run)
	c.say(true, wire.TRP{Op: wire.OpSack}, 0, 0, run[:7])
	c.say(true, wire.TRP{Op: wire.OpSack}, 0, 0, make([]byte, 33*8))
	c.packets = append(c.packets, whole(endR, endA, make([]byte, 15)))
	request := handshake()[0].payload
	for _, b := range [][]byte{request[:15], request[:18], request[:len(request)-1]} {
		c.packets = append(c.packets, whole(endR, endL, b))
	}
	want := []string{
		"fin with a body", "run is empty or does not begin after ACK", "body is not a whole number of 8-byte runs",
		"more than 32 runs",
		"shorter than its header", "packet of the handshake without its body", "shorter than its private-data length says",
		"extension block shorter than 20 bytes or beyond the packet",
	}
	for i, row := range columns(t, writeCapture(t, byAnother, c.packets), []string{"_ws.expert.message"}) {
		if i > 1 && !strings.Contains(row[0], "Malformed: "+want[i-2]) {
			t.Errorf("packet %d: got %q, want %q", i+1, row[0], fmt.Sprint("Malformed: ", want[i-2]))
		}
	}
}
