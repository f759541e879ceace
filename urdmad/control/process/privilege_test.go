package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
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

// TestMayBindBelow: root may, another user may not, and neither may who is root
// in a user namespace of its own.
func TestMayBindBelow(t *testing.T) {
	if os.Getuid() != 0 || capabilities(os.Getpid()) == 0 {
		t.Skip("needs root, to make processes of others")
	}
	if !MayBindBelow(child(t, nil)) {
		t.Error("root may not")
	}
	if MayBindBelow(child(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})) {
		t.Error("nobody may")
	}
	if MayBindBelow(0) || MayBindBelow(1<<22+1) {
		t.Error("who doesn't exist may")
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
	if MayBindBelow(child(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids})) {
		t.Error("the root of another user namespace may")
	}
}
