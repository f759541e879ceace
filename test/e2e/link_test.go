package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// kernelWires are the wires over network interfaces of the kernel.
var kernelWires = []lab.Wire{lab.AFPacket, lab.AFXDP}

// TestLinkDownAndUp takes the link of a urdmad down and up again: programs get both events, urdmad shows the link and
// sleeps, and connections work afterwards.
func TestLinkDownAndUp(t *testing.T) {
	whole(t)
	need(t, "ibv_asyncwatch")
	for _, w := range kernelWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			works(t, a, b)
			watch := watchEvents(t, a)
			for _, end := range []*lab.Node{a, b} { // down itself, and without a carrier
				setLink(t, end, "down")
				awaitEvents(t, watch, "IBV_EVENT_PORT_ERR", "port 1")
				expectLink(t, a, false)
				sleeps(t, a)
				setLink(t, end, "up")
				awaitEvents(t, watch, "IBV_EVENT_PORT_ACTIVE", "port 1")
				expectLink(t, a, true)
			}
			sleeps(t, a)
			if err := b.WaitLink(lab.Patience); err != nil {
				t.Fatal(err)
			}
			works(t, a, b)
			watch.Kill()
		})
	}
}

// TestInterfaceDeleted: programs get the event, and urdmad continues.
func TestInterfaceDeleted(t *testing.T) {
	whole(t)
	need(t, "ibv_asyncwatch")
	for _, w := range kernelWires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			works(t, a, b)
			watch := watchEvents(t, a)
			if err := a.Net.Run("ip", "link", "delete", "veth0"); err != nil {
				t.Fatal(err)
			}
			awaitEvents(t, watch, "IBV_EVENT_PORT_ERR", "port 1")
			for _, n := range labtest.Nodes(a, b) {
				expectLink(t, n, false)
				sleeps(t, n)
			}
			if out := a.Daemon.Output(); !strings.Contains(out, "the port's network interface is gone") {
				t.Errorf("urdmad does not say so:\n%s", out)
			}
			watch.Kill()
		})
	}
}

// TestMemifPeerLeaves: a memif's link is up while the other urdmad runs.
func TestMemifPeerLeaves(t *testing.T) {
	whole(t)
	need(t, "ibv_asyncwatch")
	a, b := labtest.Join(t, lab.Memif, nil)
	watch := watchEvents(t, a)
	if err := b.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, watch, "IBV_EVENT_PORT_ERR", "port 1")
	expectLink(t, a, false)
	if err := b.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, watch, "IBV_EVENT_PORT_ACTIVE", "port 1")
	expectLink(t, a, true)
	watch.Kill()
}

// watchEvents runs Debian's program for asynchronous events.
func watchEvents(t *testing.T, n *lab.Node) *lab.Process {
	t.Helper()
	p, err := n.Exec("stdbuf", "-oL", "ibv_asyncwatch")
	if err != nil {
		t.Fatal(err)
	}
	await(t, "async event FD", func() (bool, string) { return strings.Contains(p.Output(), "async event FD"), p.Output() })
	return p
}

// awaitEvents waits until the last reported event is the given one of a port.
func awaitEvents(t *testing.T, p *lab.Process, event, port string) {
	t.Helper()
	await(t, event+" of "+port, func() (bool, string) {
		lines := strings.Split(strings.TrimSpace(p.Stdout()), "\n")
		last := lines[len(lines)-1]
		return strings.Contains(last, event) && strings.Contains(last, port), p.Output()
	})
}

func setLink(t *testing.T, n *lab.Node, to string) {
	t.Helper()
	if err := n.Net.Run("ip", "link", "set", "veth0", to); err != nil {
		t.Fatal(err)
	}
}

// expectLink: urdma show and ibv_devinfo print the same state.
func expectLink(t *testing.T, n *lab.Node, up bool) {
	t.Helper()
	out, err := n.Urdma("show", "port", "--json")
	var ports []struct {
		LinkUp bool `json:"link_up"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &ports)
	}
	if err != nil || len(ports) != 1 || ports[0].LinkUp != up {
		t.Errorf("urdma show port: %v, want link_up %v:\n%s", err, up, out)
	}
	state := "PORT_DOWN"
	if up {
		state = "PORT_ACTIVE"
	}
	if out, err := n.Run(lab.Patience, "ibv_devinfo"); err != nil || !strings.Contains(out, state) {
		t.Errorf("ibv_devinfo: %v, want %s:\n%s", err, state, out)
	}
}

// sleeps: urdmad takes almost no processor time once it has handled the change of a link.
func sleeps(t *testing.T, n *lab.Node) {
	t.Helper()
	const length = 500 * time.Millisecond
	took := length
	for end := time.Now().Add(lab.Patience); took > length/4 && time.Now().Before(end); {
		took = busyFor(t, n, length)
	}
	if took > length/4 {
		t.Errorf("urdmad %s takes %v of processor time in %v with nothing to do", n.Name, took, length)
	}
}

// busyFor returns the processor time that urdmad takes during a short time.
func busyFor(t *testing.T, n *lab.Node, length time.Duration) time.Duration {
	t.Helper()
	before, err := n.Daemon.ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(length)
	after, err := n.Daemon.ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

// TestMTULargerThanTheInterface: urdmad refuses it as an error of the configuration.
func TestMTULargerThanTheInterface(t *testing.T) {
	whole(t)
	a, _ := labtest.Join(t, lab.AFPacket, nil)
	if err := a.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	mtu := func(to string) {
		if err := a.Net.Run("ip", "link", "set", "veth0", "mtu", to); err != nil {
			t.Fatal(err)
		}
	}
	mtu("1400")
	err := a.StartDaemon()
	for _, want := range []string{"urdma.json:",
		"ports[0].mtu: found 1500, allowed: at most 1400, the MTU of network interface veth0", "exit status 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("urdmad ended with %v, want %q", err, want)
		}
	}
	mtu("1500")
	if err := a.StartDaemon(); err != nil {
		t.Error(err)
	}
}

// TestShrunkPath: over sockets, existing and new connections work after the MTU of the interfaces was reduced.
func TestShrunkPath(t *testing.T) {
	whole(t)
	need(t, "rping")
	for _, w := range []lab.Wire{lab.UDP, lab.TCP} {
		t.Run(w.Name, func(t *testing.T) { shrunkPath(t, w) })
	}
}

func shrunkPath(t *testing.T, w lab.Wire) {
	a, b := labtest.Join(t, w, nil)
	server, err := lab.Pair{ServerNode: a, Server: []string{"rping", "-s", "-a", a.Address, "-P", "-S",
		"60000"}}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"rping", "-c", "-a", a.Address, "-V", "-S", "60000"}
	old, err := b.Exec(args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := underWay(t, b, old); err != nil {
		t.Fatal(err)
	}
	for _, n := range labtest.Nodes(a, b) {
		if err := n.Net.Run("ip", "link", "set", "veth0", "mtu", "1000"); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := b.Run(time.Minute, append(args, "-C", "100")...); err != nil || broken(out) {
		t.Errorf("a new connection: %v\n%s", err, out)
	}
	moves(t, b, old, 100*60000)
	if broken(old.Output()) {
		t.Errorf("the connection that stood:\n%s", lab.Tail(old.Output(), 10))
	}
	old.Kill()
	server.Kill()
}

// moves waits until a running client has moved more bytes.
func moves(t *testing.T, n *lab.Node, client *lab.Process, bytes uint64) {
	t.Helper()
	from, _ := moved(t, n, client)
	await(t, "the connection that stood to go on", func() (bool, string) {
		if !client.Running() {
			t.Fatalf("the client ended by itself:\n%s", client.Output())
		}
		now, out := moved(t, n, client)
		return now >= from+bytes, out
	})
}

// broken reports whether rping printed that its connection ended too early; its exit status does not show that.
func broken(output string) bool { return strings.Contains(output, "wait for ") }
