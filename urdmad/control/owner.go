package control

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"unicode"

	"golang.org/x/sys/unix"

	"urdma/urdmad/clock"
)

// owner is who is behind a session. name and since are set by HELLO before the
// engine knows the client.
type owner struct {
	pid, uid int                    // as the kernel says; pid 0 in a PID namespace we can't see
	admin    bool                   // see isAdmin
	realm    string                 // see realmOf; "": unknown
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
			o.realm = realmOf(o.pid)
			o.admin = (o.uid == 0 || o.uid == os.Getuid()) && o.realm == ourRealm && stillRuns(int(fd))
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

// realmOf names the PID and user namespaces of a process. root and urdmad's own
// user could look at everybody's objects with a debugger and so are admins, but
// not root of a container, which has another PID or user namespace.
//
// The kernel names namespaces only to who may trace the process, which urdmad of
// its own user may not. What everybody may read says nearly as much: how many
// numbers the process has, which users it sees, and, for one in a container, its
// cgroup.
func realmOf(pid int) string {
	switch {
	case pid <= 0:
		return ""
	case inOurs(pid, "pid", func() bool { return len(namespacePIDs(pid)) == len(namespacePIDs(os.Getpid())) }) &&
		inOurs(pid, "user", func() bool { return procText(pid, "uid_map") == procText(os.Getpid(), "uid_map") }):
		return ourRealm
	}
	pids, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	users, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil || err2 != nil {
		return procText(pid, "cgroup") + procText(pid, "uid_map")
	}
	return pids + " " + users
}

const ourRealm = "urdmad's own"

// inOurs compares a process's namespace with ours, by what looks the same where
// the kernel won't name it.
func inOurs(pid int, kind string, alike func() bool) bool {
	ours, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	if errors.Is(err, os.ErrPermission) {
		return alike()
	}
	return err == nil && theirs == ours
}

// procText is a file of a process that everybody may read, "" if it has gone.
func procText(pid int, name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// soPeerPIDFD is SO_PEERPIDFD, a descriptor of the peer's process.
const soPeerPIDFD = 77

// stillRuns makes sure that what was read under the peer's number was about the
// peer: one that has ended might have left it to another. Before Linux 6.5
// nobody can tell.
func stillRuns(fd int) bool {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	if err != nil {
		return errors.Is(err, unix.ENOPROTOOPT)
	}
	defer unix.Close(pidfd)
	ended := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 0)
	return n == 0 && err == nil
}

// printable replaces what would play tricks on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

// cString is the text before the first NUL, printable.
func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return printable(string(b))
}
