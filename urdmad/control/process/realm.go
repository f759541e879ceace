// Package process is what the kernel says about the process at the other end of
// the control socket: in whose namespaces it runs, and whether a descriptor is
// its memory. It must not know sessions or messages.
package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Realm names the PID and user namespaces of a process. root and urdmad's own
// user could look at everybody's objects with a debugger and so are admins, but
// not root of a container, which has another PID or user namespace.
//
// The kernel names namespaces only to processes that may trace this one; urdmad, as a user of
// its own, may not. What everybody may read says nearly as much: how many
// numbers the process has, which users it sees, and, for one in a container, its
// cgroup.
func Realm(pid int) string {
	switch {
	case pid <= 0:
		return ""
	case inOurs(pid, "pid", func() bool { return len(namespacePIDs(pid)) == len(namespacePIDs(os.Getpid())) }) &&
		inOurs(pid, "user", func() bool { return procText(pid, "uid_map") == procText(os.Getpid(), "uid_map") }):
		return OurRealm
	}
	pids, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	users, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil || err2 != nil {
		return procText(pid, "cgroup") + procText(pid, "uid_map")
	}
	return pids + " " + users
}

// OurRealm is the realm of urdmad itself.
const OurRealm = "urdmad's own"

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

// StillRuns makes sure that what was read under the peer's number was about the
// peer: one that has ended might have left it to another. Before Linux 6.5
// nobody can tell.
func StillRuns(fd int) bool {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	if err != nil {
		return errors.Is(err, unix.ENOPROTOOPT)
	}
	defer unix.Close(pidfd)
	ended := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 0)
	for err == unix.EINTR { // by a signal of the Go runtime's, even where nothing is waited for
		n, err = unix.Poll(ended, 0)
	}
	return n == 0 && err == nil
}

// innerPID is a process's number in its own PID namespace, "" if it can't be
// seen from ours.
func innerPID(pid int) string {
	all := namespacePIDs(pid)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// namespacePIDs are a process's numbers from the PID namespace of our /proc to
// its own.
func namespacePIDs(pid int) []string {
	_, line, _ := strings.Cut(procText(pid, "status"), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}
