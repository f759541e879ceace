package lab

import "time"

// KernelPair is two hosts of the kernel's, joined by veth and without urdmad:
// what urdma is measured against.
type KernelPair struct {
	A, B *Namespace
	// Address is A's.
	Address string
	lab     *Lab
}

// JoinKernel sets up two namespaces with an address each.
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

// OneHost is a pair of which both are this machine, with nothing but lo between.
func (l *Lab) OneHost() *KernelPair { return &KernelPair{Address: "127.0.0.1", lab: l} }

// Run starts a server in A, gives it a moment to listen, runs the client in B
// and returns what the client printed. The server is ended afterwards.
func (k *KernelPair) Run(limit time.Duration, server, client []string) (string, error) {
	s, err := k.lab.Start(Options{}, k.A.Command(server...)...)
	if err != nil {
		return "", err
	}
	defer s.Kill()
	time.Sleep(300 * time.Millisecond) // neither iperf3 nor sockperf says that it listens
	c, err := k.lab.Start(Options{}, k.B.Command(client...)...)
	if err != nil {
		return "", err
	}
	err = c.Wait(limit)
	return c.Output(), err
}
