package config

import (
	"strings"
	"testing"
)

func TestCheckCores(t *testing.T) {
	c, err := parse("urdma.json", []byte("{\"ports\":[{\"vdev\":\"loopback\",\"ipv4_address\":\"10.0.0.1/24\"}],\n \"workers\":[{\"core\":4}]}"), refuseUnknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		there []int
		want  string
	}{
		{[]int{0, 1, 2, 3, 4}, ""},
		{nil, ""}, // unknown
		{[]int{0, 1, 2, 3, 6}, "urdma.json:2: workers[0].core: found 4, allowed: a core that urdmad may use here: 0-3, 6; or -1 for any"},
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

func TestWarnings(t *testing.T) {
	port := func(address string) string { return `{"vdev":"loopback","ipv4_address":"` + address + `"}` }
	port6 := func(address string) string { return `{"vdev":"udp","ipv6_address":"` + address + `"}` }
	for ports, want := range map[string]string{
		port("10.0.0.1/24") + "," + port("10.0.1.1/24"):                                              "",
		port("10.0.0.1/16") + "," + port("10.0.1.1/24"):                                              `ports[1].ipv4_address: found "10.0.1.1/24", allowed: a network that does not overlap with ports[0]'s, 10.0.0.0/16`,
		port6("fe80::1/64") + "," + port6("fe80::2/64"):                                              "",
		port6("fd00::1/64") + "," + port6("fd00::2/64"):                                              `ports[1].ipv6_address: found "fd00::2/64", allowed: a network that does not overlap with ports[0]'s, fd00::/64`,
		port("10.0.0.1/24") + `],"eal_args":{"no-pci":true},"$comment":[`:                            `eal_args: found {"no-pci":true}, allowed: none without a port that starts DPDK's`,
		`{"vdev":"net_ring0","ipv4_address":"10.0.0.1/24"}],"eal_args":{"no-pci":true},"$comment":[`: "",
		port("169.254.1.1/16") + "," + port("169.254.1.2/16"):                                        `ports[1].ipv4_address`,
	} {
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
