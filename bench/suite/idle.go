package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"urdma/test/lab"
	"urdma/verbs"
)

var errNothing = errors.New("nothing completed")

// moves waits until the node's port has sent a thousand further packets.
func moves(n *lab.Node) error {
	const enough = 1000
	first, err := sent(n)
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var now uint64
		if now, err = sent(n); now >= first+enough {
			return err
		}
	}
	if err == nil {
		err = errNothing
	}
	return err
}

// sent is the number of packets that the node's port has sent.
func sent(n *lab.Node) (uint64, error) {
	out, err := n.Urdma("show", "port", "--json")
	if err != nil {
		return 0, err
	}
	var ports []struct {
		Packets uint64 `json:"tx_packets"`
	}
	if err := json.Unmarshal([]byte(out), &ports); err != nil || len(ports) == 0 {
		return 0, fmt.Errorf("urdma show port: %v in %s", err, out)
	}
	return ports[0].Packets, nil
}

// idle opens a number of idle connections over a wire. It returns the share of a core that the busier urdmad uses,
// in percent, and the memory that urdmad and the kernel need for one queue pair with 128 slots in each direction,
// in KiB. The urdmads are new: others may have freed memory that they still hold.
func idle(w lab.Wire, connections int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.setUp(w)
		if err != nil {
			return nil, err
		}
		for _, n := range hosts.nodes() {
			defer n.StopDaemon()
		}
		before, err := memoryOf(hosts)
		if err != nil {
			return nil, err
		}
		const slots = 128
		e, err := connect(hosts, connections, slots, 4096)
		if err != nil {
			return nil, err
		}
		defer e.close()
		time.Sleep(time.Second)
		after, err := memoryOf(hosts)
		if err != nil {
			return nil, err
		}
		share, err := busiest(hosts, 2*b.under())
		return []float64{share, float64(after-before) / float64(2*connections)}, err
	}
}

// idleStreams is the share of a core as in idle, with connections of rdma_cm.
func idleStreams(w lab.Wire, connections int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		var clients [2]*verbs.Client
		for side, n := range []*lab.Node{hosts.a, hosts.b} {
			if clients[side], err = verbs.Open(n.Socket()); err != nil {
				return nil, err
			}
			defer clients[side].Close()
		}
		if err := dialMany(clients[1], clients[0], hosts.a.Address, connections); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		share, err := busiest(hosts, 2*b.under())
		return []float64{share}, err
	}
}

// dialMany makes connections that stay open until the clients are closed.
func dialMany(from, to *verbs.Client, address string, connections int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := to.Listen(address + ":0")
	if err != nil {
		return err
	}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		for range connections {
			if _, err := l.Accept(ctx, nil); err != nil {
				accepted <- err
				return
			}
		}
		accepted <- nil
	}()
	for range connections {
		if _, err := from.Dial(ctx, l.Addr().String(), nil); err != nil {
			return err
		}
	}
	return <-accepted
}

// nodes are the hosts of a pair: one if both are the same.
func (p pair) nodes() []*lab.Node {
	if p.a == p.b {
		return []*lab.Node{p.a}
	}
	return []*lab.Node{p.a, p.b}
}

// busiest is the largest share of a core that one of the urdmads uses during that time, in percent.
func busiest(hosts pair, length time.Duration) (share float64, err error) {
	before := map[*lab.Node]time.Duration{}
	begin := time.Now()
	for _, n := range hosts.nodes() {
		if before[n], err = n.Daemon.ProcessorTime(); err != nil {
			return 0, err
		}
	}
	time.Sleep(length)
	for n, had := range before {
		now, err := n.Daemon.ProcessorTime()
		if err != nil {
			return 0, err
		}
		share = max(share, 100*float64(now-had)/float64(time.Since(begin)))
	}
	return share, nil
}

// memoryOf is the memory of the urdmads in KiB, with their page tables and the kernel's objects. The kernel's
// objects are those of all programs.
func memoryOf(hosts pair) (kib int64, err error) {
	for _, n := range hosts.nodes() {
		status := fmt.Sprintf("/proc/%d/status", n.Daemon.PID())
		if _, err := os.Stat(status); err != nil {
			return 0, err
		}
		for _, key := range []string{"RssAnon", "RssShmem", "VmPTE"} {
			kib += kilobytes(status, key)
		}
	}
	for _, key := range []string{"SUnreclaim", "KernelStack", "Percpu"} {
		kib += kilobytes("/proc/meminfo", key)
	}
	return kib, nil
}

// kilobytes reads a line such as "VmPTE:  12 kB"; 0 if there is none.
func kilobytes(file, key string) (kib int64) {
	fmt.Sscan(strings.TrimSuffix(after(file, key), "kB"), &kib)
	return kib
}
