package dpdk

import (
	"math/rand/v2"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

// rawSocket sends frames unchanged on an interface.
func rawSocket(t *testing.T, iface string) (send func([]byte) error) {
	t.Helper()
	i, err := net.InterfaceByName(iface)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	to := &unix.SockaddrLinklayer{Ifindex: i.Index}
	return func(b []byte) error { return unix.Sendto(fd, b, 0, to) }
}

// TestForeignFrames: frames of any length and kind, even longer than the port's MTU or tagged, are received
// whole or counted, and nothing else changes.
func TestForeignFrames(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, c := range []struct {
		vdev string
		spec Spec
		wire string // its MTU
	}{
		{"net_af_packet0", Spec{}, "1500"},
		{"net_af_packet0", Spec{MTU: 1000}, "9000"},
		{"net_af_packet0", Spec{}, "9000"},
		{"net_af_packet0,framesz=4096,blocksz=65536,framecnt=512", Spec{MTU: 1500}, "9000"},
		{"net_af_xdp0", Spec{}, "1500"},
		{"net_af_xdp0", Spec{MTU: 1000}, "3000"},
	} {
		t.Run(c.vdev+" on MTU "+c.wire, func(t *testing.T) {
			pairOfVeth(t, "mtu", c.wire)
			c.spec.Vdev = c.vdev + ",iface=va"
			p := open(t, c.spec)[0]
			waitUp(t, p)
			foreignFrames(t, p)
			other := open(t, Spec{Vdev: "net_af_packet1,iface=vb", MTU: p.Info().MTU})[0]
			waitUp(t, p, other)
			porttest.Exchange(t, &porttest.Pair{A: p, B: other, Step: pause, Foreign: true, Lossy: true}, 300)
		})
	}
}

func foreignFrames(t *testing.T, p port.Port) {
	t.Helper()
	const seed = 5
	t.Logf("seed %d", seed)
	rng, send := rand.New(rand.NewPCG(seed, seed)), rawSocket(t, "vb")
	mac, room := p.Info().MAC, p.Info().MTU+port.EtherHeaderLen
	var sent, long, received int
	q := p.Queue(0)
	var pk [32]port.Packet
	take := func() {
		for n := 1; n > 0; {
			n = q.Rx(pk[:])
			for i := range pk[:n] {
				if len(pk[i].Data) < port.EtherHeaderLen || len(pk[i].Data) > room {
					t.Fatalf("received %d bytes, a frame has %d to %d", len(pk[i].Data), port.EtherHeaderLen, room)
				}
			}
			received += n
			q.Free(pk[:n])
		}
	}
	for range 3000 {
		// The kernel itself drops frames that end within a tag.
		b := make([]byte, port.EtherHeaderLen+8+rng.IntN(1<<rng.IntN(14)))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		copy(b, mac[:])
		copy(b[12:], [][]byte{{8, 0}, {0x81, 0}, {0x88, 0xa8}, {0x88, 0xb5}}[rng.IntN(4)])
		if send(b) != nil {
			continue // longer than the wire carries
		}
		if sent++; len(b) > room {
			long++
		}
		if sent%16 == 0 {
			pause()
			take()
		}
	}
	for range 50 {
		pause()
		take()
	}
	s := p.Stats()
	t.Logf("sent %d, of them %d too long for the port; received %d; %+v", sent, long, received, s)
	lost := int(s.RxErrors + s.RxDropped)
	if sent < 500 || lost < long || lost > long+sent/20 || received+lost < sent {
		t.Errorf("frames are neither received nor counted")
	}
}
