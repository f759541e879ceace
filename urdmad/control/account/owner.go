package account

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/process"
	"urdma/urdmad/core/clock"
)

// Owner is the process and user of a session. HELLO sets Name and Since before the engine knows
// the client.
type Owner struct {
	PID, UID int                    // from the kernel; PID is 0 in a PID namespace that urdmad can't see
	Admin    bool                   // root or urdmad's own user, and not in another container
	Realm    string                 // see process.Realm; "": unknown
	Name     string                 // as the client has sent it
	line     atomic.Pointer[string] // from /proc, read shortly after HELLO
	Since    clock.Time
}

// Identity copies the fields that identify the owner of things that outlive a session.
func (o *Owner) Identity() *Owner {
	return &Owner{PID: o.PID, UID: o.UID, Admin: o.Admin, Realm: o.Realm, Name: o.Name}
}

// Nobody is the user ID of a peer that the kernel does not identify: it owns nothing.
const Nobody = -1

// Learn asks the kernel which process has connected (SO_PEERCRED, unix(7)).
func (o *Owner) Learn(c *net.UnixConn) {
	o.UID = Nobody
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // if the connection is closed, the owner stays Nobody
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			o.PID, o.UID = int(cred.Pid), int(cred.Uid)
			o.Realm = process.Realm(o.PID)
			o.Admin = (o.UID == 0 || o.UID == os.Getuid()) && o.Realm == process.OurRealm && process.StillRuns(int(fd))
		}
	})
}

// MayBind reports whether the process at the other end of c may bind a port number, by the rules
// of the kernel's rdma_cm.
func (o *Owner) MayBind(c *net.UnixConn, port uint16) bool {
	if port == 0 || int(port) >= process.UnprivilegedPortStart() {
		return true
	}
	return o.capable(c, unix.CAP_NET_BIND_SERVICE)
}

// MayUseControlledQKey reports whether the process at the other end of c may set a controlled
// Q_Key, one with the highest bit set, which management datagrams use. Like Linux's ibv_modify_qp
// it requires CAP_NET_RAW. Admins may use umad anyway.
func (o *Owner) MayUseControlledQKey(c *net.UnixConn) bool {
	return o.Admin || o.capable(c, unix.CAP_NET_RAW)
}

// MayUseRawPackets reports whether the process at the other end of c may create queue pairs of type RAW_PACKET on
// a port that has them. Linux's ibv_create_qp requires CAP_NET_RAW.
func (o *Owner) MayUseRawPackets(c *net.UnixConn) bool {
	return o.Admin || o.capable(c, unix.CAP_NET_RAW)
}

// capable reports whether the process at the other end of c has a capability.
func (o *Owner) capable(c *net.UnixConn, capability uint) (has bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { has = process.Capable(o.PID, capability) && process.StillRuns(int(fd)) })
	return has
}

// Sees reports whether a process may see the objects of another: admins see everything, other
// users see their own objects within the same container. If urdmad cannot see the processes, it
// cannot tell the root users of containers apart, and they see nothing of each other.
func (o *Owner) Sees(p *Owner) bool {
	return o.Admin || o.UID != Nobody && o.UID == p.UID && o.Realm == p.Realm && (o.Realm != "" || o.UID != 0)
}

const maxLine = 256 // longest stored command line, in bytes

// ReadCommandLine starts reading the client's command line, which the kernel takes from the
// client's pages.
func (a *Account) ReadCommandLine() {
	if a.Owner.PID <= 0 {
		return
	}
	a.Concurrently(func() {
		line := commandLine(fmt.Sprintf("/proc/%d/cmdline", a.Owner.PID))
		a.Owner.line.Store(&line)
	})
}

// commandLine reads a process's arguments, separated by spaces; "" if they cannot be read.
func commandLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxLine)
	n, _ := f.Read(b)
	return process.Printable(strings.TrimRight(strings.ReplaceAll(string(b[:n]), "\x00", " "), " "))
}

// CommandLine returns the command line, "" until it has been read.
func (o *Owner) CommandLine() string {
	if line := o.line.Load(); line != nil {
		return *line
	}
	return ""
}
