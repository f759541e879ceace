package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
)

const (
	kernelStep      = "DHCP, TCP, ping, iperf3 beside RDMA"
	kernelInterface = "rdma0"
)

// serveDHCP gives the machine's cards addresses, and starts iperf3's server.
func (m *cardMachine) serveDHCP(t *testing.T) {
	t.Helper()
	dir := m.host.Directory()
	conf := filepath.Join(dir, "udhcpd.conf")
	text := fmt.Sprintf("start 198.18.2.100\nend 198.18.2.120\ninterface cards\nlease_file %s/leases\npidfile %s/udhcpd.pid\noption subnet 255.255.255.0\noption lease 600\n", dir, dir)
	for name, text := range map[string]string{conf: text, filepath.Join(dir, "leases"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{filepath.Join(m.dir, "busybox"), "udhcpd", "-f", "-I", hostAddress, conf},
		{"iperf3", "-s"}} {
		if _, err := m.host.Start(argv...); err != nil {
			t.Fatal(err)
		}
	}
}

// shared: the kernel has an interface on the card, which gets its address from a DHCP client. TCP, ping and iperf3
// use the interface, iperf3 while RDMA uses the same address.
func (m *cardMachine) shared(i int) (err error) {
	_ = m.stop("TERM") // if one runs
	if err := m.launch(i, lab.Config{"ipv4_address": "0.0.0.0/24", "kernel_interface": kernelInterface}, ""); err != nil {
		return err
	}
	if out, err := m.try(60, "dhclient -4 -1 -v -lf /tmp/leases -pf /tmp/dhclient.pid "+kernelInterface+
		" >/tmp/dhclient 2>&1; s=$?; cat /tmp/dhclient; exit $s"); err != nil {
		log, _ := m.try(10, "XDG_RUNTIME_DIR=/tmp/u urdma show port; ip address; tail /tmp/log")
		return fmt.Errorf("dhclient: %w: %s\n%s", err, out, log)
	}
	if err := m.until("the link is up", `"link_up": true`); err != nil {
		return err
	}
	out, err := m.try(20, "XDG_RUNTIME_DIR=/tmp/u urdma show port --json")
	if err != nil {
		return err
	}
	var ports []struct{ Address string }
	if err := json.Unmarshal([]byte(out), &ports); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	leased, _, _ := strings.Cut(ports[0].Address, "/")
	if !strings.HasPrefix(leased, "198.18.2.1") {
		return fmt.Errorf("the port's address is %s, none of the DHCP server's", leased)
	}
	if err := m.reached(leased); err != nil {
		return err
	}
	alone, err := m.iperf()
	if err != nil {
		return err
	}
	busy := make(chan error)
	const line = "ib_write_bw -R -F -s 65536 -D 10"
	go func() { busy <- m.client(line, line+" @") }()
	beside, err := m.iperf()
	if other := <-busy; err == nil {
		err = other
	}
	if err != nil {
		return fmt.Errorf("iperf3 beside RDMA: %w", err)
	}
	m.t.Logf("iperf3 through the kernel's interface: %s alone, %s beside ib_write_bw", alone, beside)
	if out, err := m.try(30, "dhclient -r -lf /tmp/leases -pf /tmp/dhclient.pid "+kernelInterface+
		" >/dev/null 2>&1"); err != nil {
		return fmt.Errorf("dhclient -r: %w: %s", err, out)
	}
	if err := m.until("the address is given back", `"address": "0.0.0.0/24"`); err != nil {
		return err
	}
	return m.stop("TERM")
}

// reached: the kernel of the machine answers pings and TCP at an address of a card.
func (m *cardMachine) reached(at string) error {
	for _, size := range []string{"56", "1400"} {
		if err := m.host.Net.Run("ping", "-q", "-c", "5", "-i", "0.05", "-w", "30", "-s", size, at); err != nil {
			return err
		}
	}
	p, err := m.startAt(at, 30, "seq 300000") // 2 MB
	if err != nil {
		return err
	}
	if out, err := ended(p, 30); err != nil || !strings.HasSuffix(out, "\n299999\n300000\n") {
		return fmt.Errorf("a command by TCP to %s: %w: %d bytes: %s", at, err, len(out), lab.Tail(out, 3))
	}
	return nil
}

// iperf sends and receives for some seconds each and returns the rates.
func (m *cardMachine) iperf() (said string, err error) {
	for _, way := range []string{"", " -R"} {
		out, err := m.try(40, "iperf3 -f m -t 3 -c "+hostAddress+way)
		fields := []string{}
		for line := range strings.Lines(out) {
			if strings.Contains(line, "receiver") {
				fields = strings.Fields(line)
			}
		}
		if err != nil || len(fields) < 8 {
			return "", fmt.Errorf("iperf3%s: %w: %s", way, err, out)
		}
		said += map[string]string{"": "to", " -R": "from"}[way] + " the host " + strings.Join(fields[6:8], " ") + " "
	}
	return strings.TrimSpace(said), nil
}

// tagged: a port in a VLAN, and the kernel's interface with it. The host's port and interface in that VLAN accept no
// frame without the tag.
func (m *cardMachine) tagged(i int) error {
	_ = m.stop("TERM")
	settings := lab.Config{"vlan": vlan, "ipv4_address": cardTagged + "/24", "kernel_interface": kernelInterface}
	if err := m.daemon(i, settings, ""); err != nil {
		return err
	}
	m.host.Address = hostTagged
	defer func() { m.host.Address = hostAddress }()
	if err := m.rping(i); err != nil {
		return err
	}
	if err := m.bandwidth(i); err != nil {
		return err
	}
	if err := m.reached(cardTagged); err != nil {
		return err
	}
	return m.stop("TERM")
}
