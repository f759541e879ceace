package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// twoPorts changes a node's configuration: its port becomes the second port of a device, hca0. The first port leads
// nowhere, and has shorter datagrams.
func twoPorts(t *testing.T, n *lab.Node) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Directory(), "urdma.json"))
	var c struct {
		Ports []lab.Config `json:"ports"`
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || len(c.Ports) != 1 {
		t.Fatal(err, c.Ports)
	}
	c.Ports[0]["device"] = "hca0"
	first := lab.Config{"vdev": "loopback", "ipv4_address": "198.18.7.7/24", "device": "hca0", "mtu": 1500}
	for _, do := range []func() error{n.StopDaemon, func() error { return n.Change("ports", []any{first, c.Ports[0]}) },
		n.StartDaemon} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeviceOfSeveralPorts: programs reach another urdmad through the second port of a device, shown as each
// transport, by number and by rdma_cm. Events, tools and urdma name the port.
func TestDeviceOfSeveralPorts(t *testing.T) {
	whole(t)
	need(t, "ib_send_bw")
	a, b := labtest.Join(t, lab.Memif.Jumbo(), lab.Config{"transport": "ib"})
	twoPorts(t, a)
	if err := b.WaitLink(lab.Patience); err != nil {
		t.Fatal(err)
	}
	t.Run("by number", func(t *testing.T) { byNumberOfPort(t, a, b) })
	t.Run("rdma_cm", func(t *testing.T) {
		works(t, a, b)
		works(t, b, a)
		for _, c := range [][]string{{"ucmatose"}, {"udaddy", "-c", "3", "-C", "10", "-S", "4000"},
			{"rstream", "-S", "65536"}} {
			bind := map[bool]string{true: "-s", false: "-b"}
			for _, ends := range [][2]*lab.Node{{a, b}, {b, a}} {
				server := append(append([]string{}, c...), bind[false], ends[0].Address)
				client := append(append([]string{}, c...), bind[true], ends[0].Address)
				need(t, c[0])
				pass(t, lab.Pair{ServerNode: ends[0], ClientNode: ends[1], Server: server, Client: client})
			}
		}
	})
	t.Run("groups", func(t *testing.T) { mckey(t, a, b, "ib", "239.1.2.3") })
	t.Run("events", func(t *testing.T) {
		watch := watchEvents(t, a)
		defer watch.Kill()
		for _, c := range [][2]string{{"down", "IBV_EVENT_PORT_ERR"}, {"up", "IBV_EVENT_PORT_ACTIVE"}} {
			if out, err := a.Urdma("inject", "port", "hca0/2", c[0]); err != nil {
				t.Fatal(err, out)
			}
			awaitEvents(t, watch, c[1], "port 2")
		}
		if out, err := a.Run(lab.Patience, "ibv_devinfo", "-d", "hca0", "-i", "1"); err != nil ||
			!strings.Contains(out, "PORT_ACTIVE") {
			t.Errorf("the other port: %v\n%s", err, out)
		}
		if out, err := a.Urdma("inject", "port", "hca0", "down"); err == nil {
			t.Errorf("the device was taken for a port: %s", out)
		}
	})
	t.Run("tools", func(t *testing.T) {
		says(t, a, "ibstat hca0", false, "Number of ports: 2", "Base lid: 1799", "Port 2:")
		says(t, a, "ibhosts -C hca0 -P 2", false, `ports 2 ".* hca0"`)
		says(t, a, "ibnetdiscover -C hca0 -P 1", false, `Ca\s+2 "H-.* hca0"\n\[1\].*\n\[2\]`)
		says(t, a, "ibportstate -C hca0 -P 1 1799 2 query", false, `LinkState:\.+Active`)
		says(t, a, "perfquery -C hca0 -P 1 1799 2", false, `PortXmitPkts:\.+[1-9]`)
		if out, err := a.Urdma("show", "port", "--port", "hca0/2"); err != nil || !strings.Contains(out, a.Address) ||
			strings.Contains(out, "198.18.7.7") {
			t.Errorf("urdma show: %v\n%s", err, out)
		}
	})
}

// byNumberOfPort: datagrams of port 2 may be longer than those of port 1, and packets have its MTU.
func byNumberOfPort(t *testing.T, a, b *lab.Node) {
	for _, transport := range []string{"ib", "roce"} {
		for _, line := range []string{"ibv_rc_pingpong -g 0", "ibv_ud_pingpong -g 0 -s 4000", "ibv_uc_pingpong -g 0",
			"ib_send_bw -F -n 500 -x 0", "ib_write_bw -F -n 500 -x 0", "ib_send_bw -F -c UD -n 200 -s 4000 -x 0"} {
			t.Run(transport+" "+line, func(t *testing.T) {
				argv := strings.Fields(line)
				need(t, argv[0])
				port := programtest.FreePort(t)
				both := append([]string{"env", "URDMA_TRANSPORT=" + transport}, append(argv, "-p", strconv.Itoa(port))...)
				of := func(device string) []string { return append(append([]string{}, both...), "-d", device) }
				pass(t, lab.Pair{ServerNode: a, ClientNode: b, TCPPort: port, Server: append(of("hca0"), "-i", "2"),
					Client: append(of("urdma0"), "127.0.0.1")})
				pass(t, lab.Pair{ServerNode: b, ClientNode: a, TCPPort: port, Server: of("urdma0"),
					Client: append(of("hca0"), "-i", "2", "127.0.0.1")})
			})
		}
	}
	for _, way := range []string{"ibv_rc_pingpong -n 100 -g %d", "ibv_ud_pingpong -n 100 -g %d", "ib_write_bw -F -n 100 -x %d",
		"ib_send_lat -F -c UD -n 100 -x %d"} {
		for index := range 4 { // a RoCE adapter's GID table
			t.Run(fmt.Sprintf(way, index), func(t *testing.T) {
				argv := strings.Fields(fmt.Sprintf(way, index))
				need(t, argv[0])
				port := programtest.FreePort(t)
				line := append([]string{"env", "URDMA_TRANSPORT=roce"}, append(argv, "-p", strconv.Itoa(port))...)
				pass(t, lab.Pair{ServerNode: a, ClientNode: b, TCPPort: port, Server: append(line[:len(line):len(line)], "-d", "hca0",
					"-i", "2"), Client: append(line[:len(line):len(line)], "-d", "urdma0", "127.0.0.1")})
			})
		}
	}
	for _, port := range []string{"0", "3"} {
		out, err := a.Run(lab.Patience, "ibv_rc_pingpong", "-d", "hca0", "-i", port, "-p",
			fmt.Sprint(programtest.FreePort(t)), "127.0.0.1")
		if err == nil {
			t.Errorf("port %s of a device of two:\n%s", port, out)
		}
	}
}
