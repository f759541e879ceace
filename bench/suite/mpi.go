package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"urdma/bench/results"
	"urdma/test/lab"
)

// This file measures Open MPI between two ranks of this machine with NetPIPE's MPI program: the openib component
// over urdma, and the tcp component over lo. Both memif and lo have their default MTU.

func mpiMeasures() []measure {
	const large = 1 << 20 // bytes
	lat := func(id, title string, run func(*bench) ([]float64, error)) measure {
		return one(id, title+": 8 B, half a round trip (NetPIPE)", "µs", results.Lower, secondOf(run)).in(3)
	}
	rate := func(id, title string, run func(*bench) ([]float64, error)) measure {
		return gigabits(id, title+": 1 MiB to and fro (NetPIPE)", firstOf(run)).in(3)
	}
	return []measure{
		lat("mpi.loopback.lat", "Open MPI over loopback", mpiVerbs(loopback, 8)),
		lat("mpi.memif.lat", "Open MPI over memif", mpiVerbs(memif.ByDefault(), 8)),
		lat("mpi.tcp.lat", "Open MPI over its tcp and lo", mpiTCP(8)),
		rate("mpi.loopback.1m", "Open MPI over loopback", mpiVerbs(loopback, large)),
		rate("mpi.memif.1m", "Open MPI over memif", mpiVerbs(memif.ByDefault(), large)),
		rate("mpi.tcp.1m", "Open MPI over its tcp and lo", mpiTCP(large)),
	}
}

// mpiVerbs measures one message size over openib, with its default receive queues: Gb/s, and half a round trip in
// µs, both means over all messages of NetPIPE.
func mpiVerbs(w lab.Wire, size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		argv := []string{"--mca", "btl", "openib,self"}
		for i, n := range []*lab.Node{hosts.a, hosts.b} {
			if i > 0 {
				argv = append(argv, ":")
			}
			argv = append(argv, "-n", "1", "-x", "XDG_RUNTIME_DIR="+n.Directory(), n.Program("urdma"), "exec", "--")
			argv = append(argv, netpipeMPI(hosts.a, size)...)
		}
		return runMPI(hosts.a, argv)
	}
}

// mpiTCP measures the same over Open MPI's tcp component.
func mpiTCP(size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(loopback) // for its user and directory; its urdmad is idle
		if err != nil {
			return nil, err
		}
		argv := []string{"--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-n", "2"}
		return runMPI(hosts.a, append(argv, netpipeMPI(hosts.a, size)...))
	}
}

func netpipeFile(n *lab.Node) string { return filepath.Join(n.Directory(), "netpipe") }

// netpipeMPI is one rank. NetPIPE itself determines how many messages it needs for a measurable time.
func netpipeMPI(n *lab.Node, size int) []string {
	bytes := strconv.Itoa(size)
	return []string{"NPopenmpi", "-p", "0", "-l", bytes, "-u", bytes, "-o", netpipeFile(n)}
}

// runMPI runs mpirun on a host. A rank that waits yields, with both components.
func runMPI(n *lab.Node, arguments []string) ([]float64, error) {
	for program, in := range map[string]string{"mpirun": "openmpi-bin", "NPopenmpi": "netpipe-openmpi"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s (Debian package %s) is not installed", program, in)
		}
	}
	argv := []string{"mpirun", "--bind-to", "none", "--oversubscribe", "--mca", "oob_tcp_if_include", "lo",
		"--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1"}
	p, err := n.Start(append(argv, arguments...)...)
	if err != nil {
		return nil, err
	}
	if err := p.Wait(time.Minute); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, lab.Tail(p.Output(), 20))
	}
	text, err := os.ReadFile(netpipeFile(n))
	if err != nil {
		return nil, err
	}
	return parseNetpipe(string(text))
}

// parseNetpipe reads the only row of NetPIPE's file: bytes, Mb/s, seconds of half
// a round trip.
func parseNetpipe(text string) ([]float64, error) {
	f := strings.Fields(text)
	if len(f) != 3 {
		return nil, fmt.Errorf("NetPIPE wrote %q, expected one row of three columns", text)
	}
	rate, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseFloat(f[2], 64)
	return []float64{rate / 1e3, seconds * 1e6}, err
}
