package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestPrograms runs Debian's programs, unmodified, over every wire. Each wire has a share of perftest's runs. All
// runs happen on each device, with several workers, with large frames and with the kernel's addresses.
func TestPrograms(t *testing.T) {
	type row struct {
		wire  lab.Wire
		share share
	}
	rows := []row{
		{lab.Loopback, even}, {lab.Loopback.WithWorkers(2), odd},
		{lab.Memif, even}, {lab.Memif.WithWorkers(2), odd}, {lab.Memif.Jumbo(), fourth(2)},
		{lab.UDP, odd}, {lab.UDP.WithWorkers(2), even},
		{lab.TCP, odd}, {lab.TCP.WithWorkers(2), even},
		{lab.AFPacket, fourth(0)}, {lab.AFPacketKernel, fourth(1)}, {lab.AFPacket.Jumbo(), fourth(2)},
		{lab.AFXDP, fourth(3)}, {lab.AFXDPKernel, fourth(0)},
	}
	if long {
		rows = append(rows, row{lab.AFPacket.WithWorkers(2), every})
	}
	for _, r := range rows {
		w, share := r.wire, r.share
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			t.Run("rping", func(t *testing.T) { rping(t, a, b, a.Address) })
			t.Run("rping-back", func(t *testing.T) { rping(t, b, a, b.Address) })
			if w.Name == lab.Loopback.Name {
				t.Run("rping-127.0.0.1", func(t *testing.T) { rping(t, a, a, "127.0.0.1") })
			}
			t.Run("devices", func(t *testing.T) { devices(t, b, w) })
			t.Run("ucmatose", func(t *testing.T) { ucmatose(t, a, b) })
			t.Run("rdma_server", func(t *testing.T) { rdmaServer(t, a, b) })
			t.Run("rdma_xserver", func(t *testing.T) { rdmaXServer(t, a, b) })
			t.Run("examples", func(t *testing.T) { examples(t, a, b, share) })
			t.Run("perftest", func(t *testing.T) { perftest(t, a, b, w, share) })
			t.Run("atomics", func(t *testing.T) { atomics(t, a, b, share) })
			t.Run("shared receive queue", func(t *testing.T) { sharedReceives(t, a, b, share) })
		})
	}
}

// TestSocketsWithCapabilities runs programs over UDP and TCP sockets as root; in other tests they have no capability
// there.
func TestSocketsWithCapabilities(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("capabilities are root's")
	}
	for _, w := range []lab.Wire{lab.UDP, lab.TCP} {
		t.Run(w.Name, func(t *testing.T) {
			w.Name, w.Capable = w.Name+"/root", true
			a, b := labtest.Join(t, w, nil)
			t.Run("rping", func(t *testing.T) { rping(t, a, b, a.Address) })
			t.Run("ucmatose", func(t *testing.T) { ucmatose(t, a, b) })
			t.Run("rdma_server", func(t *testing.T) { rdmaServer(t, a, b) })
			t.Run("rdma_xserver", func(t *testing.T) { rdmaXServer(t, a, b) })
			t.Run("examples", func(t *testing.T) { examples(t, a, b, every) })
			for _, program := range lab.Perftest {
				t.Run(program, func(t *testing.T) {
					need(t, program)
					pass(t, lab.PerftestPair(a, b, program, "-n", "100", "-s", "5000"))
				})
			}
		})
	}
}

func rping(t *testing.T, server, client *lab.Node, address string) {
	need(t, "rping")
	pings := 200
	if long {
		pings = 1000
	}
	args := []string{"-v", "-V", "-C", strconv.Itoa(pings)}
	r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
		Server: append([]string{"rping", "-s"}, args...),
		Client: append([]string{"rping", "-c", "-a", address}, args...)})
	for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
		if got := strings.Count(output, "ping data: rdma-ping-"); got != pings {
			t.Errorf("%s printed %d pings, want %d:\n%s", side, got, pings, lab.Tail(output, 10))
		}
	}
}

// devices checks the default transport of a port: the one that suits its wire.
func devices(t *testing.T, n *lab.Node, w lab.Wire) {
	transport, layer := "InfiniBand (0)", "Ethernet"
	switch w.Device {
	case lab.Loopback.Device, lab.Memif.Device:
		layer = "InfiniBand"
	case lab.TCP.Device:
		transport = "iWARP (1)"
	}
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"ibv_devices"}, []string{"urdma0"}},
		{[]string{"ibv_devinfo", "-v"}, []string{"urdma0", "PORT_ACTIVE", transport, "link_layer:\t\t" + layer}},
	} {
		need(t, c.argv[0])
		out, err := n.Run(lab.Patience, c.argv...)
		if err != nil {
			t.Error(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v doesn't show %q:\n%s", c.argv, want, out)
			}
		}
	}
}

func ucmatose(t *testing.T, server, client *lab.Node) {
	need(t, "ucmatose")
	for _, args := range [][]string{nil, {"-c", "10", "-C", "100", "-S", "5000"}} {
		r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
			Server: append([]string{"ucmatose"}, args...),
			Client: append([]string{"ucmatose", "-s", server.Address}, args...)})
		for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
			if !strings.Contains(output, "return status 0") {
				t.Errorf("%s %v doesn't end with \"return status 0\":\n%s", side, args, output)
			}
		}
	}
}

func rdmaServer(t *testing.T, server, client *lab.Node) {
	need(t, "rdma_server")
	r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
		Server: []string{"rdma_server"}, Client: []string{"rdma_client", "-s", server.Address}})
	if !strings.Contains(r.Server, "end 0") || !strings.Contains(r.Client, "end 0") {
		t.Errorf("no \"end 0\":\n%s%s", r.Server, r.Client)
	}
}

// rdmaXServer connects by rdma_cm with a queue pair of type RC, and with the two types of XRC.
func rdmaXServer(t *testing.T, server, client *lab.Node) {
	need(t, "rdma_xserver")
	for _, kind := range []string{"r", "x"} {
		r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
			Server: []string{"rdma_xserver", "-c", kind}, Client: []string{"rdma_xclient", "-s", server.Address, "-c", kind}})
		if !strings.Contains(r.Server, "end 0") || !strings.Contains(r.Client, "end 0") {
			t.Errorf("-c %s: no \"end 0\":\n%s%s", kind, r.Server, r.Client)
		}
	}
}

func examples(t *testing.T, server, client *lab.Node, share share) {
	for i, name := range []string{"ep", "cmid", "device"} {
		if !share.has(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			port := fmt.Sprint(7471 + i)
			r := pass(t, lab.Pair{ServerNode: server, ClientNode: client,
				Server: []string{"examples/" + name + "-server", port},
				Client: []string{"examples/" + name + "-client", server.Address, port}})
			if !strings.Contains(r.Server, "OK: ") || !strings.Contains(r.Client, "OK: ") {
				t.Errorf("not both say OK:\n%s%s", r.Server, r.Client)
			}
		})
	}
}

// perftest runs the six programs, also with events. The bandwidth programs run through all sizes over memif, in the
// long tests over each wire, and otherwise through a few sizes: for each size both sides measure the processor's
// clock for a quarter of a second or more, so all sizes take six times as much processor time.
func perftest(t *testing.T, server, client *lab.Node, w lab.Wire, share share) {
	for i, program := range lab.Perftest {
		need(t, program)
		for j, mode := range []string{"poll", "events"} {
			if mode == "events" && strings.Contains(program, "write") {
				continue // perftest: "Events feature not available on WRITE verb"
			}
			if !share.has(i + j) {
				continue
			}
			all := mode == "poll" && (long && slices.ContainsFunc(perWire, func(x lab.Wire) bool { return x.Name == w.Name }) ||
				w.Device == lab.Memif.Device && strings.HasSuffix(program, "_bw"))
			args := []string{"-n", "100"}
			if mode == "events" {
				args = append(args, "-e")
			}
			t.Run(program+"/"+mode, func(t *testing.T) { sizes(t, server, client, program, all, args) })
		}
	}
}

// sharedReceives runs perftest with a shared receive queue. If several queue pairs use it, the ports are shown as
// roce. On an iWARP device perftest counts credits by the receives' wr_id, which then don't identify a queue pair. If
// a queue pair gets more credits than it has sent, its window, an unsigned number, stays closed.
func sharedReceives(t *testing.T, server, client *lab.Node, share share) {
	for i, c := range []struct {
		transport, program string
		args               []string
	}{
		{"iwarp", "ib_send_bw", []string{"-s", "2"}},
		{"iwarp", "ib_send_lat", []string{"-s", "65536"}},
		{"roce", "ib_send_bw", []string{"-q", "4"}},
		{"roce", "ib_send_bw", []string{"-q", "16", "-s", "2", "-b"}},
		{"ib", "ib_send_bw", []string{"-q", "4", "-e"}},
		{"roce", "ib_send_lat", []string{"-s", "2", "-e"}},
	} {
		if !share.has(i) {
			continue
		}
		need(t, c.program)
		t.Run(strings.Join(append([]string{c.transport, c.program}, c.args...), ""), func(t *testing.T) {
			pair := lab.PerftestPair(server, client, c.program, slices.Concat([]string{"-n", "1000", "--use-srq"}, c.args)...)
			pair.ShownAs(c.transport)
			r := pass(t, pair)
			if rows, err := lab.ParsePerftest(r.Client); err != nil || len(rows) != 1 || rows[0].Iterations < 100 {
				t.Errorf("%v:\n%s", err, r.Client)
			}
		})
	}
}

// atomics runs perftest's two programs with both operations.
func atomics(t *testing.T, server, client *lab.Node, share share) {
	for i, program := range []string{"ib_atomic_bw", "ib_atomic_lat"} {
		need(t, program)
		for j, operation := range []string{"FETCH_AND_ADD", "CMP_AND_SWAP"} {
			if !share.has(i + j) {
				continue
			}
			t.Run(program+"/"+operation, func(t *testing.T) {
				r := pass(t, lab.PerftestPair(server, client, program, "-n", "1000", "-A", operation))
				if rows, err := lab.ParsePerftest(r.Client); err != nil || rows[0].Bytes != 8 {
					t.Errorf("%v:\n%s", err, r.Client)
				}
			})
		}
	}
}

func sizes(t *testing.T, server, client *lab.Node, program string, all bool, args []string) {
	if !all {
		for _, size := range []string{"2", "5000", "1048576"} {
			r := pass(t, lab.PerftestPair(server, client, program, slices.Concat([]string{"-s", size}, args)...))
			if rows, err := lab.ParsePerftest(r.Client); err != nil || fmt.Sprint(rows[0].Bytes) != size {
				t.Errorf("size %s: %v", size, err)
			}
		}
		return
	}
	pair := lab.PerftestPair(server, client, program, append([]string{"-a"}, args...)...)
	pair.Limit = 4 * time.Minute
	if long {
		pair.Limit = 20 * time.Minute
	}
	r := pass(t, pair)
	rows, err := lab.ParsePerftest(r.Client)
	if err != nil {
		t.Fatal(err)
	}
	// -a means every power of two from 2 to 8 MiB.
	if len(rows) != 23 || rows[22].Bytes != 1<<23 {
		t.Errorf("%d sizes, want 23, up to 8388608:\n%s", len(rows), r.Client)
	}
}
