package main

import "testing"

// TestSockets: --udp and --tcp are configurations of one port, each in place of a file.
func TestSockets(t *testing.T) {
	for _, vdev := range []string{"udp", "tcp"} {
		var s source
		if err := s.setVdev(vdev == "udp", vdev == "tcp", false); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := s.load()
		if err != nil {
			t.Fatal(err)
		}
		if p := &cfg.Ports[0]; p.Vdev != vdev || !p.UDP() {
			t.Errorf("--%s: %+v", vdev, p)
		}
	}
	for _, given := range [][3]bool{{true, true, false}, {true, false, true}, {false, true, true}} {
		var s source
		if err := s.setVdev(given[0], given[1], given[2]); err == nil {
			t.Errorf("udp, tcp, a file: %v: accepted", given)
		}
	}
}
