package dpdk

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port/porttest"
)

// TestHostileArguments: every vdev string leads to an error or to a port that works, and leaves nothing
// behind.
func TestHostileArguments(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	open(t, Spec{Vdev: "net_ring0", MTU: 1500}) // starts the EAL
	refused := func(vdev, want string) {
		t.Helper()
		before, began := openDescriptors(t), time.Now()
		defer func() {
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: took %v", vdev, took)
			}
		}()
		_, closeAll, err := OpenPorts([]Spec{{Name: "p", Vdev: vdev}}, ealTestArgs, testLog(t))
		if err == nil {
			closeAll()
			t.Errorf("%s: opened, want an error about %q", vdev, want)
			return
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"p"`) {
			t.Errorf("%s: %v, want an error about %q", vdev, err, want)
		}
		if after := openDescriptors(t); after != before {
			t.Errorf("%s: %d descriptors before, %d after", vdev, before, after)
		}
	}
	for _, size := range []string{"65536", "67584", "131072", "-2048", "0", "2047", "1e4", "99999999999999999999",
		"32769"} {
		refused("net_af_packet0,iface=va,framesz="+size, "framesz="+size)
	}
	for _, more := range []string{"framecnt=0", "framecnt=-1", "framecnt=1", "blocksz=0", "blocksz=1", "blocksz=-65536",
		"blocksz=2147483648", "framecnt=2147483647", "colour=red"} {
		refused("net_af_packet0,iface=va,"+more, "net_af_packet0")
	}
	for _, n := range []string{"0", "-1", "2", "70000", "x", ""} {
		refused("net_af_packet0,iface=va,qpairs="+n, "qpairs="+n+", allowed: qpairs=1")
		refused("net_af_xdp0,iface=va,queue_count="+n, "queue_count="+n+", allowed: queue_count=1")
	}
	for _, more := range []string{"start_queue=-1", "start_queue=77", "xdp_prog=/nosuch", "colour=red"} {
		refused("net_af_xdp0,iface=va,"+more, "net_af_xdp0")
	}
	refused("net_tap0,iface="+strings.Repeat("x", 300), "net_tap0")
	refused("net_af_packet0,iface="+strings.Repeat("x", 300), "network interface")
	refused("net_af_packet0,iface=va\x01", "network interface")
	refused("loopback,mtu=-20", "mtu=-20")
	refused("loopback,mtu=99999999999", "mtu=99999999999")
	refused("loopback,mtu=575", "mtu=575")
	refused("memif,role=server,socket=/tmp/x,mtu=70000", "mtu=70000")
	refused("memif,role=server,socket=/tmp/x,ring=7", "ring")
	refused("memif,role=server,socket=/tmp/x,ring=-1", "ring")
	refused("memif,role=server,socket="+strings.Repeat("x", 300), "socket path")
	p := open(t, Spec{Vdev: "net_af_packet0,iface=va"}, Spec{Vdev: "net_af_packet1,iface=vb"})
	waitUp(t, p...)
	porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 100)
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// TestDescriptorCounts: the smallest and the largest allowed number of descriptors lead to a port that works.
func TestDescriptorCounts(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	for _, n := range []int{32, 100, 2048} {
		for _, vdev := range []string{"net_af_packet0", "net_af_xdp0"} {
			t.Run(fmt.Sprint(vdev, " ", n), func(t *testing.T) {
				pairOfVeth(t)
				p := open(t, Spec{Vdev: vdev + ",iface=va", RxDesc: n, TxDesc: n},
					Spec{Vdev: "net_af_packet1,iface=vb", RxDesc: n, TxDesc: n})
				waitUp(t, p...)
				porttest.Exchange(t, &porttest.Pair{A: p[0], B: p[1], Step: pause, Foreign: true, Lossy: true}, 500)
			})
		}
	}
}
