package kernelif

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/wire"
)

// TestInterface: the interface has its port's properties, and frames pass in both directions.
func TestInterface(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and with it its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a network namespace: %v", err)
	}
	c := Config{Name: "urdmatest0", MAC: [6]byte{2, 0, 0, 0, 0, 7}, MTU: 2000,
		Address: netip.MustParsePrefix("198.18.9.1/24")}
	i, err := Open(c)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(c); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second of that name: %v", err)
	}
	long := c
	long.Name = "a-name-of-16-bytes"
	if _, err := Open(long); err == nil {
		t.Error("a name that is too long is taken")
	}
	six, err := Open(Config{Name: "urdmatest1", MAC: [6]byte{2, 0, 0, 0, 0, 8}, MTU: 1500,
		Address: netip.MustParsePrefix("fd00:9::1/64")})
	if err != nil {
		t.Fatal(err)
	}
	six.Close()
	dev, err := net.InterfaceByName(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := dev.Addrs()
	if err != nil || dev.MTU != c.MTU || !bytes.Equal(dev.HardwareAddr, c.MAC[:]) || len(addresses) != 1 ||
		addresses[0].String() != c.Address.String() {
		t.Errorf("%+v %v %v", dev, addresses, err)
	}
	i.SetLink(true)
	running(t, c.Name)
	const private = 0x88b5 // an EtherType
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC,
		int(binary.NativeEndian.Uint16([]byte{private >> 8, private & 0xff})))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	kernel := &unix.SockaddrLinklayer{Ifindex: dev.Index,
		Protocol: binary.NativeEndian.Uint16([]byte{private >> 8, private & 0xff})}
	if err := unix.Bind(fd, kernel); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}); err != nil {
		t.Fatal(err)
	}
	frame := append([]byte{2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, private >> 8, private & 0xff},
		bytes.Repeat([]byte{0xab}, c.MTU)...)
	sent := make(chan []byte, 1)
	i.Run(func(b []byte, done func()) {
		if len(b) > 13 && b[12] == private>>8 && b[13] == private&0xff { // the kernel sends frames, too
			sent <- bytes.Clone(b)
		}
		done()
	})
	if i.Take(append(bytes.Clone(frame), 1), 0, 0) {
		t.Error("a frame longer than the MTU is taken")
	}
	if !i.Take(frame, 0, 0) {
		t.Error("a frame is not taken")
	}
	got := make([]byte, 4096)
	if n, _, err := unix.Recvfrom(fd, got, 0); err != nil || !bytes.Equal(got[:n], frame) {
		t.Errorf("the kernel received %d bytes: %v", n, err)
	}
	for range 3 * inFrames { // more than can be outstanding
		if err := unix.Sendto(fd, frame, 0, kernel); err != nil {
			t.Fatal(err)
		}
		select {
		case b := <-sent:
			if !bytes.Equal(b, frame) {
				t.Fatalf("the kernel's frame came as %d bytes", len(b))
			}
		case <-time.After(time.Minute):
			t.Fatal("no frame comes from the kernel")
		}
	}
	takesUnfinished(t, i, &c)
	i.Close()
	if _, err := net.InterfaceByName(c.Name); err == nil {
		t.Error("the interface is left")
	}
}

// running waits until the kernel has noticed that the link is up. Before, it drops what programs send.
func running(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		dev, err := net.InterfaceByName(name)
		if err != nil || time.Now().After(end) {
			t.Fatalf("%s is not running: %v", name, err)
		}
		if dev.Flags&net.FlagRunning != 0 {
			return
		}
	}
}

// takesUnfinished: the kernel accepts datagrams whose checksum their sender left to a network card, if it is told so,
// and none with a wrong checksum.
func takesUnfinished(t *testing.T, i *Interface, c *Config) {
	t.Helper()
	s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: c.Address.Addr().AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var h wire.UDPHeader
	h.Init(wire.MAC{2, 0, 0, 0, 0, 9}, c.MAC, wire.IPv4{198, 18, 9, 2}, c.Address.Addr().As4(), 5000,
		s.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	frame := func(text string) []byte {
		b := append(make([]byte, wire.UDPHeaderLen), text...)
		h.Put(b, len(text), 0)
		sum := uint32(wire.ProtoUDP) + uint32(wire.UDPLen+len(text))
		for at := wire.EthernetLen + 12; at < wire.EthernetLen+wire.IPv4Len; at += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[at:]))
		}
		binary.BigEndian.PutUint16(b[wire.UDPHeaderLen-2:], uint16(sum>>16+sum))
		return b
	}
	wrong, right := frame("wrong"), frame("unfinished")
	sum, at := wire.UnfinishedChecksum(right)
	if !i.Take(wrong, 0, 0) || !i.Take(right, sum, at) {
		t.Fatal("a datagram is not taken")
	}
	b := make([]byte, 100)
	if err := s.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(b); err != nil || string(b[:n]) != "unfinished" {
		t.Errorf("the kernel has received %q: %v", b[:n], err)
	}
}
