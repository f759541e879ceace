package main

import "testing"

// TestSockets: --udp and --tcp are configurations of one port, each in place of a file.
func TestSockets(t *testing.T) {
	for _, c := range []struct{ udp, tcp, vdev string }{{"30035", "", "udp"}, {"", "30035", "tcp"},
		{"7", "", "udp,port=7"}, {"", "65535", "tcp,port=65535"}} {
		var s source
		if err := s.setVdev(c.udp, c.tcp, false); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := s.load()
		if err != nil {
			t.Fatal(err)
		}
		if p := &cfg.Ports[0]; p.Vdev != c.vdev || !p.UDP() {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	for _, c := range []struct {
		udp, tcp string
		file     bool
	}{{"30035", "30035", false}, {"30035", "", true}, {"", "7", true}, {"0", "", false}, {"65536", "", false},
		{"", "seven", false}} {
		var s source
		if err := s.setVdev(c.udp, c.tcp, c.file); err == nil {
			t.Errorf("udp, tcp, a file: %v: accepted", c)
		}
	}
}
