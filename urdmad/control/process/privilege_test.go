package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// child is a process that runs with these attributes until the test ends.
func child(t *testing.T, attr *syscall.SysProcAttr) int {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.SysProcAttr = attr
	if err := c.Start(); err != nil {
		t.Skipf("no child with %+v: %v", attr, err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

// TestCapable: root has a capability, another user has not, and neither has who is root
// in a user namespace of its own.
func TestCapable(t *testing.T) {
	if os.Getuid() != 0 || capabilities(os.Getpid()) == 0 {
		t.Skip("needs root, to make processes of others")
	}
	if !Capable(child(t, nil), unix.CAP_NET_RAW) {
		t.Error("root has not")
	}
	if Capable(child(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}), unix.CAP_NET_RAW) {
		t.Error("nobody has")
	}
	if Capable(0, unix.CAP_NET_RAW) || Capable(1<<22+1, unix.CAP_NET_RAW) {
		t.Error("who doesn't exist has")
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
	if Capable(child(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}),
		unix.CAP_NET_RAW) {
		t.Error("the root of another user namespace has")
	}
}
