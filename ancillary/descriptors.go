// Package ancillary reads the ancillary data of messages on unix sockets.
package ancillary

import "golang.org/x/sys/unix"

// Descriptors returns the file descriptors that came with a message (SCM_RIGHTS, unix(7)); the caller owns them.
// Package net receives messages with MSG_CMSG_CLOEXEC, so no process that we start inherits them.
func Descriptors(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil { // otherwise it is of another kind
			fds = append(fds, got...)
		}
	}
	return fds, err
}
