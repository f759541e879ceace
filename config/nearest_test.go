package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"mtu", "mtu", 0}, {"mut", "mtu", 1},
		{"ipv4_adress", "ipv4_address", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct{ parent, name, want string }{
		{"", "port", `did you mean "ports"?`},
		{"", "Transport", `did you mean "transport"?`},
		{"", "eal-args", `did you mean "eal_args"?`},
		{"ports[3]", "ipv4", `known here: name, device, pci_address, vdev, ipv4_address, ipv6_address, gateway, mtu, ` +
			`interface_mtu, vlan, kernel_interface, allow, crc, protocol, raw_packets, mac_address, max_qp, rx_desc_count, tx_desc_count, ` +
			`rx_burst_size, tx_burst_size, transport, placement`},
		{"ports[3]", "mac_adress", `did you mean "mac_address"?`},
		{"workers[0]", "cpu", "known here: core"},
		{"workers[0]", "cores", `did you mean "core"?`},
		{"", "spin_us", `"spin_us" is known as polling.spin_us`},
		{"limits", "mtu", `"mtu" is known as ports[].mtu`},
	} {
		if got := suggest(c.parent, c.name); got != c.want {
			t.Errorf("suggest(%q, %q) = %s, want %s", c.parent, c.name, got, c.want)
		}
	}
}

func TestSuggestVdev(t *testing.T) {
	for text, want := range map[string]string{
		"tap0,iface=t":      `did you mean "net_tap0,iface=t"?`,
		"nett_tap0,iface=t": `did you mean "net_tap0,iface=t"?`,
		"memiff,id=1":       `did you mean "memif,id=1"?`,
		"eth0":              "",
		"net_af_packt0":     `did you mean "net_af_packet0"?`,
	} {
		if got := suggestVdev(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestSuggestDriver(t *testing.T) {
	for text, want := range map[string]string{
		"net_af_packt0,iface=e": `did you mean "net_af_packet0,iface=e"?`,
		"net_af_xpd3,iface=e":   `did you mean "net_af_xdp3,iface=e"?`,
		"net_af_packet0":        "", "net_pcap1": "", "net_ring0": "", "net_virtio_user0": "",
		"net_mlx5": "", "loopback": "", "virtio_user0": "", "eth_tap0": "", "": "",
	} {
		if got := suggestDriver(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestMisspeltDriver: a device name of the right form with an unknown driver gives a warning.
func TestMisspeltDriver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urdma.json")
	if err := os.WriteFile(file, []byte(`{"ports":[{"ipv4_address":"10.2.0.1","vdev":"net_af_packt0,iface=e"}]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], `did you mean "net_af_packet0,iface=e"?`) {
		t.Errorf("%q", w)
	}
}
