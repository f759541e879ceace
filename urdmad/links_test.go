package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/verbs"
	"urdma/wire"
)

// ipv6Daemon is a urdmad with one IPv6 port on a network of the test. It serves clients at socket.
func ipv6Daemon(t *testing.T) (d *daemon, far *linked.Port, network *linked.Network, socket string) {
	t.Helper()
	network = linked.New(1)
	near, far := network.Pair(linked.Options{}, linked.Options{}, linked.Path{}, linked.Path{})
	file := filepath.Join(t.TempDir(), "urdma.json")
	socket = filepath.Join(filepath.Dir(file), "urdmad.sock")
	text := `{"ports":[{"vdev":"loopback","ipv6_address":"fd00::1/64"}],"socket":"` + socket + `"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src := source{file: file}
	cfg, _, err := src.load()
	if err != nil {
		t.Fatal(err)
	}
	d = newDaemon(src, cfg)
	d.Ports = []port.Port{near}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := d.usePorts(); err != nil {
		t.Fatal(err)
	}
	if d.listener, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Server.Serve(d.listener) }() // until stop closes it
	return d, far, network, socket
}

// claim is the message of a host that already has an address (RFC 4861 section 7.2.6).
func claim(address [16]byte) []byte {
	b := make([]byte, wire.NDPFrameLen)
	theirs := wire.MAC{2, 0, 0, 0, 0xd, 0xd}
	a := wire.NDP{Type: wire.ICMPv6Advertise, Target: address, MAC: theirs, HasMAC: true, Override: true}
	return b[:a.Put(b, theirs, wire.Group6MAC(wire.AllNodes), address, wire.AllNodes)]
}

// TestAddressLost: a port whose address another host has is down for programs, in sysfs and for users, and stays down
// when its link goes down and up.
func TestAddressLost(t *testing.T) {
	d, far, network, socket := ipv6Daemon(t)
	client, err := verbs.Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	device := client.Devices()[0]
	if !device.Up {
		t.Fatal("the port is down from the start")
	}
	x, err := device.Open()
	if err != nil {
		t.Fatal(err)
	}
	var ev verbs.AsyncEvent
	for give := time.Now().Add(time.Minute); ev.Type == 0; {
		d.Pollers[0].Engine.Do(d.Pollers[0].Engine.Announce) // asks for a second whether another host has the address
		d.Pollers[0].Worker.Wake()
		far.Inject(claim(d.Config.Ports[0].Address.Addr().As16()))
		network.Advance(network.Now() + 1)
		select {
		case ev = <-x.Events():
		case <-time.After(time.Millisecond):
			if time.Now().After(give) {
				t.Fatal("programs were told nothing")
			}
		}
	}
	if ev.Type != verbs.EventPortErr || ev.Port != 1 {
		t.Errorf("programs were told %+v, expected EventPortErr of port 1", ev)
	}
	lost := func(when string) {
		t.Helper()
		if now, err := device.Query(); err != nil || now.Up {
			t.Errorf("%s the port is up for programs (%v)", when, err)
		}
		state, err := os.ReadFile(filepath.Join(d.Config.SysfsDir, "class/infiniband", device.Name, "ports/1/state"))
		if err != nil || string(state) != "1: DOWN\n" {
			t.Errorf("%s sysfs says %q (%v)", when, state, err)
		}
		if said := d.status(); !strings.Contains(said, "fd00::1/64 down") {
			t.Errorf("%s the service manager is told %q", when, said)
		}
	}
	lost("once its address is another host's")
	near := d.Ports[0].(*linked.Port)
	near.SetLink(false)
	near.SetLink(true)
	lost("when its link came up again")
	select {
	case ev := <-x.Events():
		t.Errorf("programs were told %+v of a link that is of no use", ev)
	default:
	}
}

// TestLinkIsCutAtOnce: the next program sees the link as urdma inject has left it.
func TestLinkIsCutAtOnce(t *testing.T) {
	d, _, _, _ := ipv6Daemon(t)
	for range 5 {
		for _, down := range []bool{true, false} {
			if d.cutLink(0, down); d.Links.Up(0) == down {
				t.Fatalf("the link is up: %v", !down)
			}
		}
	}
}
