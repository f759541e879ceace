package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// KernelPair is two hosts that use only the kernel, joined by veth, without urdmad. The benchmarks compare urdma with
// it.
type KernelPair struct {
	A, B *Namespace
	// Address is the address of A.
	Address string
	lab     *Lab
}

// JoinKernel makes a pair of two namespaces with an address each.
func (l *Lab) JoinKernel(mtu int) (*KernelPair, error) {
	k := &KernelPair{Address: "198.18.2.1", lab: l}
	var err error
	if k.A, err = l.NewNamespace(); err != nil {
		return nil, err
	}
	if k.B, err = l.NewNamespace(); err != nil {
		return nil, err
	}
	if err := veth(k.A, k.B, mtu); err != nil {
		return nil, err
	}
	if err := k.A.Run("ip", "address", "add", k.Address+"/24", "dev", "veth0"); err != nil {
		return nil, err
	}
	return k, k.B.Run("ip", "address", "add", "198.18.2.2/24", "dev", "veth0")
}

// OneHost returns a pair in which both hosts are this machine, connected by lo.
func (l *Lab) OneHost() *KernelPair { return &KernelPair{Address: "127.0.0.1", lab: l} }

// Run starts a server in A, waits until it listens, runs the client in B and returns the client's output. It ends the
// server afterwards.
func (k *KernelPair) Run(limit time.Duration, server, client []string) (string, error) {
	s, err := k.lab.Start(Options{}, k.A.Command(server...)...)
	if err != nil {
		return "", err
	}
	defer s.Kill()
	s.awaitSocket()
	c, err := k.lab.Start(Options{}, k.B.Command(client...)...)
	if err != nil {
		return "", err
	}
	err = c.Wait(limit)
	return c.Output(), err
}

// awaitSocket waits until a peer can reach the process by TCP or UDP, or until the process has ended. iperf3 and
// sockperf don't print when they are ready, but the kernel knows their sockets. If the kernel does not show them, or
// no such socket appears, awaitSocket returns after a moment, and the measurement fails.
func (p *Process) awaitSocket() {
	const moment, most = 300 * time.Millisecond, 10 * time.Second
	for end := time.Now().Add(most); p.Running() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		own, err := p.sockets()
		if err != nil {
			time.Sleep(moment)
			return
		}
		for _, inode := range p.reachable() {
			if own[inode] {
				return
			}
		}
	}
}

// sockets returns the inodes of the process's sockets.
func (p *Process) sockets() (map[string]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", p.PID())
	all, err := os.ReadDir(dir)
	own := map[string]bool{}
	for _, fd := range all {
		to, _ := os.Readlink(filepath.Join(dir, fd.Name())) // "" if closed meanwhile: no listening socket
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own, err
}

// reachable returns the inodes of sockets in the process's network namespace that listen for TCP, or have a UDP
// address (proc_net(5)).
func (p *Process) reachable() (inodes []string) {
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.PID(), table)) // empty if the process has ended
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && (f[3] == "0A" || strings.HasPrefix(table, "udp")) {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes
}
