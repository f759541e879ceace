package programtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// Port numbers that the kernel gives to no socket by itself (net.ipv4.ip_local_port_range of ip(7)).
const (
	firstPort = 22000
	ports     = 8000 // less than the UDP port 30035 of "udp"
)

var lastPort atomic.Uint32

func init() { lastPort.Store(rand.Uint32N(ports)) } // tests of several packages run at once

// FreePort returns a TCP port number on which nobody listens, and which no other call in this process returns. A
// program may bind it later: the kernel doesn't give it to a socket of another program meanwhile, as it may give the
// number of a closed socket that was bound to port 0.
func FreePort(t testing.TB) int {
	t.Helper()
	for range ports {
		port := firstPort + int(lastPort.Add(1)%ports)
		if l, err := net.Listen("tcp", fmt.Sprint(":", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
