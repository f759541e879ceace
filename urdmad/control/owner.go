package control

import (
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/urdmad/clock"
	"urdma/urdmad/control/process"
)

// owner is who is behind a session. name and since are set by HELLO before the
// engine knows the client.
type owner struct {
	pid, uid int                    // as the kernel says; pid 0 in a PID namespace we can't see
	admin    bool                   // see isAdmin
	realm    string                 // see process.Realm; "": unknown
	name     string                 // as the client says
	line     atomic.Pointer[string] // as /proc says, a little after HELLO
	since    clock.Time
}

// nobody is the uid of a peer the kernel would not tell: it owns nothing.
const nobody = -1

// learn asks the kernel who connected (SO_PEERCRED, unix(7)).
func (o *owner) learn(c *net.UnixConn) {
	o.uid = nobody
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // a closed connection stays nobody's
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			o.pid, o.uid = int(cred.Pid), int(cred.Uid)
			o.realm = process.Realm(o.pid)
			o.admin = (o.uid == 0 || o.uid == os.Getuid()) && o.realm == process.OurRealm && process.StillRuns(int(fd))
		}
	})
}

// sees reports whether a process may look at what another has: an admin at
// everything, others at what their own user has on their side of a container's
// wall. Where urdmad can't see the processes all roots look alike, and see
// nothing of each other.
func (o *owner) sees(p *owner) bool {
	return o.admin || o.uid != nobody && o.uid == p.uid && o.realm == p.realm && (o.realm != "" || o.uid != 0)
}
