package dpdk

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"urdma/dpdk/port/porttest"
)

// interfaceFacts returns the properties in sysfs that a port must not change.
func interfaceFacts(t *testing.T, name string) string {
	t.Helper()
	var facts strings.Builder
	for _, file := range []string{"mtu", "flags", "address"} {
		b, err := os.ReadFile("/sys/class/net/" + name + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&facts, "%s %s ", file, strings.TrimSpace(string(b)))
	}
	return facts.String()
}

// TestInterfaceIsLeftAsItWas: a port takes the interface's MTU, or changes it only if configured, and
// restores it; address and flags do not change for other users.
func TestInterfaceIsLeftAsItWas(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
		for _, c := range []struct {
			name string
			spec Spec
			// what changes on the interface while the port is open: always IFF_ALLMULTI, which ip link does
			// not show
			while string
			want  int // the port's MTU
		}{
			{"its MTU", Spec{}, "mtu 1400 flags 0x1203", 1400},
			{"a smaller MTU", Spec{MTU: 1000}, "mtu 1400 flags 0x1203", 1000},
			{"a larger MTU, raised", Spec{MTU: 1600, RaiseMTU: true}, "mtu 1600 flags 0x1203", 1600},
			{"another address", Spec{MAC: [6]byte{2, 0, 0, 0, 0, 9}}, "mtu 1400 flags 0x1303", 1400}, // IFF_PROMISC
		} {
			t.Run(vdev+" "+c.name, func(t *testing.T) {
				pairOfVeth(t, "mtu", "1400")
				before := interfaceFacts(t, "va")
				c.spec.Vdev = vdev + ",iface=va"
				p, closeAll, err := OpenPorts([]Spec{c.spec}, ealTestArgs, testLog(t))
				if err != nil {
					t.Fatal(err)
				}
				if got := p[0].Info(); got.MTU != c.want || c.spec.MAC != [6]byte{} && got.MAC != c.spec.MAC {
					t.Errorf("the port is %+v, want MTU %d", got, c.want)
				}
				want := strings.Replace(before, "mtu 1400 flags 0x1003", c.while, 1)
				if got := interfaceFacts(t, "va"); got != want {
					t.Errorf("while open: %s, want %s", got, want)
				}
				if err := closeAll(); err != nil {
					t.Error(err)
				}
				if after := interfaceFacts(t, "va"); after != before {
					t.Errorf("after: %s, before: %s", after, before)
				}
			})
		}
	}
}

// TestPromiscuousStays: a port does not clear a flag that another user has set.
func TestPromiscuousStays(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
		pairOfVeth(t)
		ip(t, "link", "set", "va", "promisc", "on")
		before := interfaceFacts(t, "va")
		_, closeAll, err := OpenPorts([]Spec{{Vdev: vdev + ",iface=va"}}, ealTestArgs, testLog(t))
		if err != nil {
			t.Fatal(err)
		}
		open := interfaceFacts(t, "va")
		if err := closeAll(); err != nil {
			t.Error(err)
		}
		if after := interfaceFacts(t, "va"); open != strings.Replace(before, "flags 0x1103", "flags 0x1303", 1) ||
			after != before {
			t.Errorf("%s: before %s, while open %s, after %s", vdev, before, open, after)
		}
		ip(t, "link", "del", "va")
	}
}

// TestOtherAddressConformance: frames for an address other than the interface's are received.
func TestOtherAddressConformance(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va", MAC: [6]byte{2, 0, 0, 0, 0, 9}},
		Spec{Vdev: "net_af_xdp0,iface=vb", MAC: [6]byte{2, 0, 0, 0, 0, 8}})
	waitUp(t, p...)
	porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 2000)
}

// TestMTULargerThanTheInterface: such an MTU is refused with the setting's name, before anything is changed.
func TestMTULargerThanTheInterface(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	mountSysfs(t)
	pairOfVeth(t, "mtu", "1400")
	before := interfaceFacts(t, "va")
	for _, vdev := range []string{"net_af_packet0", "net_af_xdp0", "eth_af_packet0"} {
		_, _, err := OpenPorts([]Spec{{Name: "p", Vdev: vdev + ",iface=va", MTU: 1500}}, ealTestArgs, testLog(t))
		var wrong *SettingError
		if !errors.As(err, &wrong) || wrong.Setting != "mtu" || wrong.Port != "p" ||
			!strings.Contains(err.Error(), "found 1500, allowed: at most 1400, the MTU of network interface va") {
			t.Errorf("%s: %v", vdev, err)
		}
		if after := interfaceFacts(t, "va"); after != before {
			t.Errorf("after: %s, before: %s", after, before)
		}
	}
}
