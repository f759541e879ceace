package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSockets: --udp and --tcp are configurations of one port, instead of a file.
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

// TestFileThatIsNotRead: a urdmad without --config warns about the file that its unit would read.
func TestFileThatIsNotRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	file := filepath.Join(home, "urdma/urdma.json")
	for _, c := range []struct {
		source
		there, warns bool
	}{
		{source{}, false, false}, {source{}, true, true}, {source{socket: "/run/own.sock"}, true, false},
		{source{file: file}, true, false}, {source{vdev: "udp"}, true, false},
	} {
		_ = os.RemoveAll(filepath.Dir(file))
		if c.there {
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(`{"ports":[{"vdev":"loopback","ipv4_address":"10.0.0.1"}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, warnings, err := c.load()
		if got := strings.Contains(strings.Join(warnings, "\n"), file+" is not read"); err != nil || got != c.warns {
			t.Errorf("%+v: warnings %q, error %v", c, warnings, err)
		}
	}
}
