package netif_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/loopback"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/netif"
	"urdma/wire"
)

// TestForgedSources: packets from addresses that no other host can have (one of ours, of any port;
// loopback; a group; unspecified) are not answered: programs, and urdmad's responder, assume that a peer at
// such an address is on this machine.
func TestForgedSources(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 99})
	second := wire.IPv4{10, 0, 1, 1}
	w.A.Engine.AddPort(loopback.Open("second", [6]byte{2, 0, 0, 0, 0, 7}, 1500, netip.Addr{}),
		netif.Address{Prefix: netip.PrefixFrom(netip.AddrFrom4(second), 24)})
	s := w.Stranger()
	honest := s.IP
	ask := func(from wire.IPv4) int {
		s.IP, s.Got = from, nil
		b := make([]byte, 600)
		at := (&wire.TRP{Op: wire.OpRequest, PSN: 5}).Put(b)
		n, err := (&wire.TRPConnect{}).Put(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		s.SendFrame(s.Datagram(4000, 5000, b[:at+n]))
		w.Pass(10 * time.Millisecond)
		s.Receive()
		return len(s.Got)
	}
	if ask(honest) != 1 {
		t.Fatal("a request from the link is not answered")
	}
	forged := []wire.IPv4{{127, 0, 0, 1}, w.A.IP, second, {0, 0, 0, 0}, {224, 0, 0, 1}, {255, 255, 255, 255}}
	for _, ip := range forged {
		if n := ask(ip); n != 0 {
			t.Errorf("%d answers to a request from %v", n, ip)
		}
	}
	if n := w.A.Engine.Interface(0).Stats.Dropped[netif.DropSource]; n != uint64(len(forged)) {
		t.Errorf("%d packets dropped for their source, expected %d", n, len(forged))
	}
}

// TestARPAndEcho: host A answers ARP requests and echo requests for its address
// and ignores the rest.
func TestARPAndEcho(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 42})
	s := w.Stranger()
	mac := wire.MAC(w.A.Port.Info().MAC)
	ask := func(target wire.IPv4) {
		b := make([]byte, 64)
		at := wire.PutEthernet(b, wire.MAC{255, 255, 255, 255, 255, 255}, s.MAC, wire.EtherTypeARP)
		r := wire.ARP{Op: wire.ARPRequest, SenderMAC: s.MAC, SenderIP: s.IP, TargetIP: target}
		s.SendFrame(b[:at+r.Put(b[at:])])
		w.Pass(time.Millisecond)
		s.Receive()
	}
	ask(w.A.IP)
	if len(s.Frames) != 1 {
		t.Fatalf("%d answers to an ARP request", len(s.Frames))
	}
	var a wire.ARP
	if _, err := a.Parse(s.Frames[0][14:]); err != nil || a.Op != wire.ARPReply || a.SenderMAC != mac ||
		a.SenderIP != w.A.IP {
		t.Errorf("ARP answer %+v: %v", a, err)
	}
	s.Frames = nil
	ask(wire.IPv4{10, 0, 0, 9})
	if len(s.Frames) != 0 {
		t.Error("answered for another address")
	}
	echo := make([]byte, 14+20+8+56)
	wire.PutEthernet(echo, mac, s.MAC, wire.EtherTypeIPv4)
	ip := echo[14:]
	copy(ip, []byte{0x45, 0, 0, byte(len(ip)), 0, 1, 0, 0, 64, 1, 0, 0, s.IP[0], s.IP[1], s.IP[2], s.IP[3], w.A.IP[0],
		w.A.IP[1], w.A.IP[2], w.A.IP[3]})
	ip[20], ip[24], ip[27] = 8, 0x12, 3
	for i := range ip[28:] {
		ip[28+i] = byte(i)
	}
	sum := ^wire.Fold(wire.Checksum(0, ip[:20]))
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	if !wire.VerifyIPv4Checksum(ip[:20]) {
		ip[10], ip[11] = byte(sum), byte(sum>>8)
	}
	sum = ^wire.Fold(wire.Checksum(0, ip[20:]))
	ip[22], ip[23] = byte(sum>>8), byte(sum)
	if wire.Fold(wire.Checksum(0, ip[20:])) != 0xffff {
		ip[22], ip[23] = byte(sum), byte(sum>>8)
	}
	s.SendFrame(echo)
	w.Pass(time.Millisecond)
	s.Receive()
	if len(s.Frames) != 1 {
		t.Fatalf("%d answers to an echo request", len(s.Frames))
	}
	r := s.Frames[0]
	if r[34] != 0 || !bytes.Equal(r[38:], echo[38:]) || !bytes.Equal(r[30:34], s.IP[:]) ||
		wire.Fold(wire.Checksum(0, r[34:])) != 0xffff {
		t.Errorf("echo reply % x", r)
	}
}
