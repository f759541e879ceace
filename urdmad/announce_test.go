package main

import (
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/test/linked"
)

// lateLink is a port whose link comes up just before it is watched.
type lateLink struct{ *linked.Port }

// Watch implements port.Port. Frames sent before it are lost.
func (p lateLink) Watch(f func(up bool)) {
	for range 20 {
		if s := p.Stats(); s.TxPackets+s.TxDropped > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.SetLink(true)
	p.Port.Watch(f)
}

// TestLinkComesUpDuringStart: the link's change is noticed whenever the port comes up.
func TestLinkComesUpDuringStart(t *testing.T) {
	network := linked.New(1)
	near, far := network.Pair(linked.Options{}, linked.Options{}, linked.Path{}, linked.Path{})
	near.SetLink(false)
	src := written(t, t.TempDir(), "")
	cfg, _, err := src.load()
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(src, cfg)
	d.Ports = []port.Port{lateLink{near}}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := d.usePorts(); err != nil {
		t.Fatal(err)
	}
	var p [1]port.Packet
	for give := time.Now().Add(time.Minute); far.Queue(0).Rx(p[:]) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("the link was told nothing")
		}
		network.Advance(network.Now() + 1)
	}
	if p[0].Data[12] != 8 || p[0].Data[13] != 6 {
		t.Errorf("the first frame is no ARP packet: % x", p[0].Data)
	}
}
