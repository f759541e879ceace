// Package ancillary reads the ancillary data of messages on unix sockets, and disposes of descriptors that came with
// them. Their last close can take as long as their owner likes (FUSE, SO_LINGER).
package ancillary

import "golang.org/x/sys/unix"

// maxDescriptors is the largest number of descriptors in a message (SCM_MAX_FD of Linux, unix(7)).
const maxDescriptors = 253

// Buffer returns a buffer for the ancillary data of any message. If there was no room for a descriptor, the kernel
// would close it before recvmsg(2) returned.
func Buffer() []byte { return make([]byte, unix.CmsgSpace(4*maxDescriptors)) }

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
