package wire

import "testing"

// Hot paths allocate nothing, refusals included: a flood of bad packets must
// not feed the garbage collector.
func TestNothingAllocates(t *testing.T) {
	var (
		f      Frame
		h      UDPHeader
		h6     UDP6Header
		ndp    NDP
		report MLDReport
		trp    TRP
		conn   TRPConnect
		d      DDP
		read   ReadRequest
		req    AtomicRequest
		resp   AtomicResponse
		imm    Immediate
		term   Terminate
		arp    ARP
		runs   [MaxSackRuns]SackRun
		out    [1500]byte
	)
	frame := udpFrame(1000, 1)
	SetUDPChecksum(frame)
	vlan := append([]byte{}, frame...)
	vlan[12], vlan[13] = 0x81, 0
	echo := echoFrame(56)
	frame6, solicit := udp6(make([]byte, 1000)), unhex(t, solicitFrame)
	connect := unhex(t, plainBody+extBlock)
	sack := unhex(t, "00000005 00000007  fffffffe 00000002")
	send, badQueue := unhex(t, sendHeader), unhex(t, sendHeader)
	badQueue[9] = 4
	terminate := unhex(t, "1101 c000 004e c140 cafe0001 0000000000001000")
	for name, fn := range map[string]func(){
		"Frame":      func() { f.Parse(frame, len(frame)) },
		"Frame VLAN": func() { f.Parse(vlan, len(vlan)) },
		"checksums": func() {
			f.Parse(frame, len(frame))
			VerifyIPv4Checksum(frame[14:34])
			VerifyUDPChecksum(&f, frame[34:])
			SetUDPChecksum(frame)
		},
		"UDPHeader": func() { h.Init(vm1MAC, vm2MAC, vm1IP, vm2IP, 1, 2); h.Put(out[:], 100, 9) },
		"IPv6": func() {
			f.Parse(frame6, len(frame6))
			VerifyUDPChecksum(&f, frame6[54:])
			h6.Init(macA, macB, ip6A, ip6B, 1, 2)
			h6.Put(out[:], 100)
			SetUDP6Checksum(out[:162])
		},
		"neighbour discovery": func() {
			f.Parse(solicit, len(solicit))
			ndp.Parse(&f, solicit[54:])
			ndp.Put(out[:], macA, macB, ip6A, ip6B)
			ndp.Parse(&f, solicit[54:70])
		},
		"listener discovery": func() { report.Put(out[:], macA, ip6A) },
		"EchoReply":          func() { f.Parse(echo, len(echo)); EchoReply(&f, echo, vm1MAC) },
		"ARP":                func() { arp.Put(out[:]); arp.Parse(out[:]) },
		"TRP":                func() { trp.Put(out[:]); trp.Parse(out[:]); trp.Parse(out[:3]) },
		"connect":            func() { conn.Parse(connect); conn.Put(out[:]); conn.Parse(connect[:4]) },
		"sack": func() {
			n, _ := ParseSackRuns(runs[:], sack)
			PutSackRuns(out[:], runs[:n])
			ParseSackRuns(runs[:], sack[:9])
		},
		"DDP":             func() { d.Parse(send); d.Put(out[:]) },
		"DDP queue":       func() { d.Parse(badQueue) },
		"read":            func() { read.Put(out[:]); read.Parse(out[:ReadRequestLen]); read.Parse(out[:3]) },
		"atomic":          func() { req.Put(out[:]); req.Parse(out[:AtomicRequestLen]); req.Parse(nil) },
		"atomic response": func() { resp.Put(out[:]); resp.Parse(out[:AtomicResponseLen]) },
		"immediate":       func() { imm.Put(out[:]); imm.Parse(out[:ImmediateLen]) },
		"terminate":       func() { term.Parse(terminate); term.Put(out[:]); term.Parse(terminate[:9]) },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
