package config

import (
	"strings"
	"testing"
)

func TestCheckCores(t *testing.T) {
	c, err := parse("urdma.json", []byte("{\"ports\":[{\"vdev\":\"loopback\",\"ipv4_address\":\"10.0.0.1/24\"}],\n "+
		"\"workers\":[{\"core\":4}]}"), refuseUnknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		there []int
		want  string
	}{
		{[]int{0, 1, 2, 3, 4}, ""},
		{nil, ""}, // not known
		{[]int{0, 1, 2, 3, 6}, "urdma.json:2: workers[0].core: found 4, allowed: a core that urdmad may use here: 0-3, 6; " +
			"or -1 for any"},
	} {
		got := ""
		if err := c.CheckCores(x.there); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("cores %v: %q, expected %q", x.there, got, x.want)
		}
	}
	if len(Cores()) == 0 {
		t.Error("this process may use no core")
	}
}

// TestAutoWorkers: "auto" gives one worker for every four processors, if each can have sockets or a queue of its own,
// and never a value that the file itself could not set.
func TestAutoWorkers(t *testing.T) {
	was := processors
	defer func() { processors = was }()
	memif, memif2 := `{"vdev":"memif,role=server,socket=/a","ipv4_address":"10.0.3.1/24"}`,
		`{"vdev":"memif,role=client,socket=/b","ipv4_address":"10.0.4.1/24"}`
	udp, tcp, loopback := `{"vdev":"udp","ipv4_address":"10.0.0.1/24"}`, `{"vdev":"tcp","ipv4_address":"10.0.1.1/24"}`,
		`{"vdev":"loopback","ipv4_address":"10.0.2.1/24"}`
	card, tap := `{"pci_address":"0000:01:00.0","ipv4_address":"10.0.3.1/24"}`,
		`{"vdev":"net_tap0","ipv4_address":"10.0.4.1/24"}`
	for _, x := range []struct {
		processors int
		ports      string
		want       int
	}{
		{1, udp, 1}, {2, udp, 1}, {7, udp, 1}, {8, udp, 2}, {16, udp + "," + tcp, 4}, {32, tcp, 8}, {400, udp, 8},
		{16, loopback, 1}, {16, udp + "," + loopback, 4}, {16, card, 4}, {16, tap + "," + loopback, 4},
		{16, udp + "," + card, 4},
		{8, memif, 2}, {400, memif + "," + memif2, 8}, {16, memif + "," + loopback, 4}, {16, memif + "," + udp, 4},
	} {
		processors = x.processors
		c, err := parse("urdma.json", []byte(`{"ports":[`+x.ports+`], "workers":"auto"}`), refuseUnknown)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Workers) != x.want || c.Workers[0].Core != -1 || !c.AutoWorkers {
			t.Errorf("%d processors, ports %s: workers %v, expected %d that are bound to none", x.processors, x.ports, c.Workers,
				x.want)
		}
		again, err := parse("again.json", c.JSON(), refuseUnknown)
		if err != nil || len(again.Workers) != x.want {
			t.Errorf("the configuration as it is in effect: %v, %v", again, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	port := func(address string) string { return `{"vdev":"loopback","ipv4_address":"` + address + `"}` }
	port6 := func(address string) string { return `{"vdev":"udp","ipv6_address":"` + address + `"}` }
	for _, x := range [][2]string{
		{port("10.0.0.1/24") + "," + port("10.0.1.1/24"), ""},
		{port("10.0.0.1/16") + "," + port("10.0.1.1/24"),
			`ports[1].ipv4_address: found "10.0.1.1/24", allowed: a network that does not overlap with ports[0]'s, 10.0.0.0/16`},
		{port6("fe80::1/64") + "," + port6("fe80::2/64"), ""},
		{port6("fd00::1/64") + "," + port6("fd00::2/64"),
			`ports[1].ipv6_address: found "fd00::2/64", allowed: a network that does not overlap with ports[0]'s, fd00::/64`},
		{port("10.0.0.1/24") + `],"eal_args":{"no-pci":true},"$comment":[`,
			`eal_args: found {"no-pci":true}, allowed: none without a port that starts DPDK's`},
		{`{"vdev":"net_ring0","ipv4_address":"10.0.0.1/24"}],"eal_args":{"no-pci":true},"$comment":[`, ""},
		{`{"ipv4_address":"10.0.0.1/24"}`, `ports[0].pci_address: found nothing, allowed: a NIC's address`},
		{port("169.254.1.1/16") + "," + port("169.254.1.2/16"), `ports[1].ipv4_address`},
	} {
		ports, want := x[0], x[1]
		c, err := parse("urdma.json", []byte(`{"ports":[`+ports+`]}`), refuseUnknown)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(c.Warnings(), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, expected %q", ports, got, want)
		}
	}
}
