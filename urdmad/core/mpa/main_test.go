package mpa_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) {
	noSockets = !enginetest.HasLo()
	os.Exit(enginetest.RunWithLo(m))
}

var (
	noSockets bool
	port      = uint16(8000) // of host A's listener: each world has another, since sockets stay open
)

// world makes two engines that are connected over TCP.
func world(t testing.TB, o enginetest.Options) *enginetest.World {
	t.Helper()
	if noSockets {
		t.Skip("no network namespace")
	}
	o.TCP = true
	port++
	for port >= 32768 || !free(port) { // from here the kernel takes numbers for sockets that are bound to none
		if port++; port >= 32768 {
			port = 8001
		}
	}
	return enginetest.New(t, o)
}

// free reports whether no socket of an earlier world listens at the port.
func free(port uint16) bool {
	l, err := net.Listen("tcp", fmt.Sprint(":", port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
