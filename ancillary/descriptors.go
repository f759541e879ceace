// Package ancillary reads what comes along with a message on a unix socket.
package ancillary

import "golang.org/x/sys/unix"

// Descriptors are the file descriptors that came with a message (SCM_RIGHTS of
// unix(7)), the caller's from now on. net reads messages with MSG_CMSG_CLOEXEC,
// so no process that we start gets them.
func Descriptors(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil { // else it is of another kind
			fds = append(fds, got...)
		}
	}
	return fds, err
}
