package account

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRights: port numbers below net.ipv4.ip_unprivileged_port_start are for who has
// CAP_NET_BIND_SERVICE, controlled Q_Keys for who has CAP_NET_RAW, or has umad anyway.
func TestRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make a process of another user")
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialUnix("unixpacket", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := exec.Command("sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	root, nobody := Owner{PID: os.Getpid()}, Owner{PID: other.Process.Pid, UID: 65534}
	if nobody.MayBind(c, 7) != (unprivilegedStart(t) <= 7) || !nobody.MayBind(c, 0) || !nobody.MayBind(c, 7471) {
		t.Error("an ordinary user's port numbers")
	}
	if !root.MayBind(c, 7) {
		t.Error("root may not bind port number 7")
	}
	if nobody.MayUseControlledQKey(c) || !root.MayUseControlledQKey(c) {
		t.Error("controlled Q_Keys of nobody, or none of root")
	}
	if nobody.Admin = true; !nobody.MayUseControlledQKey(c) {
		t.Error("no controlled Q_Keys of urdmad's user")
	}
	c.Close()
	if unprivilegedStart(t) > 7 && root.MayBind(c, 7) {
		t.Error("whoever has hung up may bind")
	}
}

func unprivilegedStart(t *testing.T) int {
	t.Helper()
	n := 1024
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil {
		n = 0
		for _, d := range text {
			if d >= '0' && d <= '9' {
				n = 10*n + int(d-'0')
			}
		}
	}
	return n
}
