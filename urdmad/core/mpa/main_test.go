package mpa_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/engine/enginetest"
)

const inside = "URDMA_MPA_TEST_INSIDE"

// TestMain runs the tests in a network namespace of their own, whose lo has the
// addresses of the engines' hosts.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		if err := enginetest.SetUpLo(); err != nil {
			fmt.Fprintln(os.Stderr, "lo:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	c := exec.Command(os.Args[0], os.Args[1:]...)
	c.Env = append(os.Environ(), inside+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}, Pdeathsig: unix.SIGKILL}
	err := c.Run()
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "no network namespace, so no tests over sockets:", err)
		noSockets = true
		os.Exit(m.Run())
	}
	os.Exit(c.ProcessState.ExitCode())
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
