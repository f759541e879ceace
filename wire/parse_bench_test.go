package wire

import "testing"

// BenchmarkReceive parses the headers of one arriving data segment: Ethernet, IPv4, UDP, TRP, DDP.
func BenchmarkReceive(b *testing.B) {
	frame := udpFrame(1448, 1)
	trp := TRP{PSN: 7, Ack: 9, Credits: 64, Cookie: 1}
	n := UDPHeaderLen + trp.Put(frame[UDPHeaderLen:])
	ddp := DDP{Tagged: true, Last: true, Op: OpWrite, STag: 1, TO: 4096}
	ddp.Put(frame[n:])
	var f Frame
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Parse(frame[:MaxHeaderLen], len(frame)); err != nil {
			b.Fatal(err)
		}
		n, err := trp.Parse(frame[f.PayloadOff:])
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ddp.Parse(frame[f.PayloadOff+n:]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSend writes the headers of one outgoing data segment.
func BenchmarkSend(b *testing.B) {
	var h UDPHeader
	h.Init(vm1MAC, vm2MAC, vm1IP, vm2IP, 1, 2)
	frame := make([]byte, 1500)
	trp := TRP{PSN: 7, Ack: 9, Credits: 64, Cookie: 1}
	ddp := DDP{Tagged: true, Last: true, Op: OpWrite, STag: 1, TO: 4096}
	b.ReportAllocs()
	for b.Loop() {
		h.Put(frame, 1448, uint16(trp.PSN))
		n := UDPHeaderLen + trp.Put(frame[UDPHeaderLen:])
		ddp.Put(frame[n:])
		trp.PSN++
	}
}
