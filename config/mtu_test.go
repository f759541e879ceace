package config

import (
	"os"
	"path/filepath"
	"testing"
)

// The default MTU of a memif is the fastest for shared memory; a port on a network interface takes that interface's
// MTU.
func TestDefaultMTU(t *testing.T) {
	for vdev, want := range map[string]int{
		`"vdev": "memif,role=server,socket=/run/w.sock"`: 9000,
		`"vdev": "net_null0"`:                            1500,
		`"pci_address": "0000:03:00.0"`:                  1500,
		`"vdev": "udp"`:                                  0,
		`"vdev": "tcp"`:                                  0,
		`"vdev": "net_af_packet0,iface=eth0"`:            0,
	} {
		file := filepath.Join(t.TempDir(), "urdma.json")
		if err := os.WriteFile(file, []byte(`{"ports": [{`+vdev+`, "ipv4_address": "10.1.0.1/24"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file, nil)
		if err != nil {
			t.Fatalf("%s: %v", vdev, err)
		}
		if got := c.Ports[0].MTU; got != want {
			t.Errorf("%s: MTU %d, want %d", vdev, got, want)
		}
	}
}
