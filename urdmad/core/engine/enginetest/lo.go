package enginetest

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const inside = "URDMA_TEST_INSIDE_NAMESPACE"

var withLo = os.Getenv(inside) != ""

// HasLo reports whether this process is the one that RunWithLo starts. In it Options.TCP works.
func HasLo() bool { return withLo }

// RunWithLo runs a package's tests in a network namespace of their own, whose lo has the addresses of the engines'
// hosts, and returns the exit status. If there can be no namespace, it runs them here; those over TCP must skip.
func RunWithLo(m *testing.M) (status int) {
	if withLo {
		if err := SetUpLo(); err != nil {
			fmt.Fprintln(os.Stderr, "lo:", err)
			return 1
		}
		return m.Run()
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
		return m.Run()
	}
	return c.ProcessState.ExitCode()
}

// SetUpLo adds the addresses 10.0.0.0/8 to interface lo. It must run in a network namespace of the test's own.
func SetUpLo() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return err
	}
	if err := r.SetInet4Addr(netip.MustParseAddr("10.0.0.1").AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)
}
