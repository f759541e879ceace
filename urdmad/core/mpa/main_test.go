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
	port      = uint16(8000) // that host A listens on: another for each world, as nobody closes an engine's sockets
)

// world is two engines that are connected over TCP.
func world(t testing.TB, o enginetest.Options) *enginetest.World {
	t.Helper()
	if noSockets {
		t.Skip("no network namespace")
	}
	o.TCP = true
	port++
	return enginetest.New(t, o)
}
