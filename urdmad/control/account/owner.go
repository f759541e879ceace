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

// Owner is the process and user behind a session. Name and Since are set by HELLO before the
// engine knows the client.
type Owner struct {
	PID, UID int                    // as the kernel says; PID 0 in a PID namespace we can't see
	Admin    bool                   // root's or urdmad's own user, on our side of a container's wall
	Realm    string                 // see process.Realm; "": unknown
	Name     string                 // as the client says
	line     atomic.Pointer[string] // as /proc says, a little after HELLO
	Since    clock.Time
}

// Identity copies what says whose something is that outlives a session.
func (o *Owner) Identity() *Owner {
	return &Owner{PID: o.PID, UID: o.UID, Admin: o.Admin, Realm: o.Realm, Name: o.Name}
}

// Nobody is the uid of a peer the kernel would not tell: it owns nothing.
const Nobody = -1

// Learn asks the kernel which process connected (SO_PEERCRED, unix(7)).
func (o *Owner) Learn(c *net.UnixConn) {
	o.UID = Nobody
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // a closed connection stays Nobody's
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			o.PID, o.UID = int(cred.Pid), int(cred.Uid)
			o.Realm = process.Realm(o.PID)
			o.Admin = (o.UID == 0 || o.UID == os.Getuid()) && o.Realm == process.OurRealm && process.StillRuns(int(fd))
		}
	})
}

// MayBind reports whether the process at the other end of c may have a port
// number of ours, as it would of the kernel's rdma_cm.
func (o *Owner) MayBind(c *net.UnixConn, port uint16) bool {
	if port == 0 || int(port) >= process.UnprivilegedPortStart() {
		return true
	}
	return o.capable(c, unix.CAP_NET_BIND_SERVICE)
}

// MayManage reports whether the process at the other end of c may have a controlled Q_Key,
// one with the highest bit, which management datagrams have: as Linux's ibv_modify_qp asks,
// with CAP_NET_RAW. Admins have umad anyway.
func (o *Owner) MayManage(c *net.UnixConn) bool {
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

// Sees reports whether a process may look at what another has: an admin at
// everything, others at what their own user has on their side of a container's
// wall. Where urdmad can't see the processes all roots look alike, and see
// nothing of each other.
func (o *Owner) Sees(p *Owner) bool {
	return o.Admin || o.UID != Nobody && o.UID == p.UID && o.Realm == p.Realm && (o.Realm != "" || o.UID != 0)
}

const maxLine = 256 // bytes of a command line that are kept

// ReadCommandLine has the client's command line read; the kernel takes it from
// the client's pages.
func (a *Account) ReadCommandLine() {
	if a.Owner.PID <= 0 {
		return
	}
	a.Beside(func() {
		line := commandLine(fmt.Sprintf("/proc/%d/cmdline", a.Owner.PID))
		a.Owner.line.Store(&line)
	})
}

// commandLine reads a process's arguments, separated by spaces; what cannot be
// read is not shown.
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

// CommandLine is what was read so far.
func (o *Owner) CommandLine() string {
	if line := o.line.Load(); line != nil {
		return *line
	}
	return ""
}
