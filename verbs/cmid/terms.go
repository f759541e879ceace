package cmid

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// MaxPrivateData is the number of bytes of private data that every peer can read (its length has 8 bits in
// struct rdma_conn_param).
const MaxPrivateData = 255

// SetPrivate stores private data; EINVAL for more than MaxPrivateData.
func SetPrivate(p *abi.CMParam, private []byte) error {
	if len(private) > MaxPrivateData {
		return fmt.Errorf("verbs: %d bytes of private data, expected at most %d: %w", len(private), MaxPrivateData,
			syscall.EINVAL)
	}
	p.SetPrivate(private)
	return nil
}

// Depth converts an option to a number of outstanding RDMA Reads: 0 means the maximum, a negative value none.
func Depth(n int) uint8 {
	if n == 0 {
		return 255
	}
	return uint8(min(max(n, 0), 255))
}

// RNRTries converts an option to the number of retries for a message to a peer without a receive: 0 and 7
// mean for ever, a negative value none.
func RNRTries(n int) uint8 {
	if n == 0 {
		return 7
	}
	return uint8(min(max(n, 0), 7))
}

// Limit reduces the requested depths to the limits in the peer's request and of the device.
func Limit(p *abi.CMParam, serve, reads, device int) {
	p.ResponderResources = uint8(min(int(p.ResponderResources), serve, device))
	p.InitiatorDepth = uint8(min(int(p.InitiatorDepth), reads, device))
}
