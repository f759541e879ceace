package mpa_test

import (
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
	if port++; port == 32768 { // from here the kernel takes numbers for sockets that are bound to none
		port = 8001
	}
	return enginetest.New(t, o)
}
