// Package process reads facts about the process at the other end of the control socket from the
// kernel: its namespaces, and whether a descriptor is its memory. It must not know sessions or
// messages.
package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Realm returns a name for the PID and user namespaces of a process. root and urdmad's own user
// could inspect every process with a debugger and so are admins. The root user of a container,
// which has another PID or user namespace, is not.
//
// The kernel names namespaces only to processes that may trace this one, and urdmad running under
// its own user may not. Realm then uses facts that any user can read: the number of PIDs the
// process has, its user mapping and, in a container, its cgroup.
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

// inOurs reports whether a process is in the same namespace as urdmad. If the kernel does not
// name it, alike compares the facts that any user can read.
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

// procText returns the content of a process's file that any user may read; "" if the process is
// gone.
func procText(pid int, name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// soPeerPIDFD is SO_PEERPIDFD, which returns a pidfd of the peer.
const soPeerPIDFD = 77

// StillRuns makes sure that data read under the peer's PID was about the peer. If the peer had
// ended, another process might have got its PID. Before Linux 6.5 that cannot be checked.
func StillRuns(fd int) bool {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPIDFD)
	if err != nil {
		return errors.Is(err, unix.ENOPROTOOPT)
	}
	defer unix.Close(pidfd)
	ended := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 0)
	for err == unix.EINTR { // a signal of the Go runtime can interrupt even a call that does not wait
		n, err = unix.Poll(ended, 0)
	}
	return n == 0 && err == nil
}

// innerPID returns a process's number in its own PID namespace, "" if urdmad's namespace does not
// show it.
func innerPID(pid int) string {
	all := namespacePIDs(pid)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// namespacePIDs returns a process's numbers in the PID namespaces from that of our /proc to its
// own.
func namespacePIDs(pid int) []string {
	_, line, _ := strings.Cut(procText(pid, "status"), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}
