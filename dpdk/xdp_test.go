package dpdk

import (
	"errors"
	"strings"
	"testing"

	"urdma/dpdk/netdev"
)

// xdpOf returns the XDP program that interface va runs.
func xdpOf(t *testing.T) netdev.XDP {
	t.Helper()
	dev, err := netdev.ByName("va")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x, err := dev.XDP()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestXDPProgramOfWhoWasFaster: if two processes find the interface free, the second does not remove the
// first one's program.
func TestXDPProgramOfWhoWasFaster(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	first, second := Spec{Vdev: "net_af_xdp0,iface=va"}, Spec{Vdev: "net_af_xdp1,iface=va"}
	if err := startEAL(ealArguments([]Spec{first, second}, ealTestArgs), testLog(t)); err != nil {
		t.Fatal(err)
	}
	free, err := second.prepare()
	if err != nil {
		t.Fatal(err)
	}
	defer free.undoBorrow()
	open(t, first)
	has := xdpOf(t)
	_, err = second.openPrepared(free)
	if err == nil || !strings.Contains(err.Error(), "has an XDP program") {
		t.Errorf("got %v, want it to tell of the program", err)
	}
	if busy := (*BusyError)(nil); !errors.As(err, &busy) {
		t.Errorf("%v is no BusyError", err)
	}
	if now := xdpOf(t); now != has || has.ID == 0 {
		t.Errorf("the interface has program %+v, had %+v", now, has)
	}
}

// TestXDPProgramAfterOurs: a port whose program was replaced does not remove the new one when it is closed.
func TestXDPProgramAfterOurs(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t, "numrxqueues", "2", "numtxqueues", "2")
	p := open(t, Spec{Vdev: "net_af_xdp0,iface=va"})[0]
	ours := xdpOf(t)
	ip(t, "link", "set", "va", "xdp", "off")
	open(t, Spec{Vdev: "net_af_xdp1,iface=va,start_queue=1"})
	theirs := xdpOf(t)
	if theirs.ID == 0 || theirs == ours {
		t.Fatalf("program %+v after %+v", theirs, ours)
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if now := xdpOf(t); now != theirs {
		t.Errorf("the interface has program %+v, had %+v", now, theirs)
	}
}

// TestQueueNotYetFree: an interface whose queue the kernel has not yet taken back, after its program was removed, is
// busy. Some versions of DPDK's driver keep the queue until the process ends.
func TestQueueNotYetFree(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	spec := []Spec{{Vdev: "net_af_xdp0,iface=va"}}
	_, closeAll, err := OpenPorts(spec, ealTestArgs, testLog(t))
	if err = errors.Join(err, closeAll()); err != nil {
		t.Fatal(err)
	}
	if x := xdpOf(t); x.ID != 0 {
		t.Errorf("the closed port has left program %+v", x)
	}
	_, closeAll, err = OpenPorts(spec, nil, testLog(t))
	if busy := (*BusyError)(nil); err != nil && !errors.As(err, &busy) {
		t.Errorf("%v is no BusyError", err)
	}
	if err == nil {
		err = closeAll()
	}
	t.Log(err)
}

// TestOtherErrorNextToProgram: an error that has nothing to do with the interface's XDP program is no BusyError, such
// as of rings that need more memory than there is.
func TestOtherErrorNextToProgram(t *testing.T) {
	if ranInNamespace(t) {
		return
	}
	pairOfVeth(t)
	first, second := Spec{Vdev: "net_af_xdp0,iface=va"}, Spec{Vdev: "net_af_xdp1,iface=va", RxDesc: 16384, TxDesc: 16384}
	if err := startEAL(ealArguments([]Spec{first}, []string{"--no-huge", "--no-shconf", "-m", "64"}), testLog(t)); err != nil {
		t.Fatal(err)
	}
	open(t, first)
	_, _, err := OpenPorts([]Spec{second}, nil, testLog(t))
	if err == nil || !strings.Contains(err.Error(), "rte_pktmbuf_pool_create failed") {
		t.Errorf("got %v, want an error of too little memory", err)
	}
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		t.Errorf("%v is a BusyError", err)
	}
}
