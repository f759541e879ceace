package cmid

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// MaxPrivateData is how many bytes of private data every peer can read
// (struct rdma_conn_param counts them in 8 bits).
const MaxPrivateData = 255

// SetPrivate stores private data; EINVAL for more than MaxPrivateData.
func SetPrivate(p *abi.CMParam, private []byte) error {
	if len(private) > MaxPrivateData {
		return fmt.Errorf("verbs: %d bytes of private data, expected at most %d: %w", len(private), MaxPrivateData, syscall.EINVAL)
	}
	p.SetPrivate(private)
	return nil
}

// Depth is how many RDMA Reads may be open, for an option of which 0 is as many as
// there can be, and less is none.
func Depth(n int) uint8 {
	if n == 0 {
		return 255
	}
	return uint8(min(max(n, 0), 255))
}

// RNRTries is how often a message to a peer without a receive is tried again, for an
// option of which 0 and 7 are for ever, and less than 0 is never.
func RNRTries(n int) uint8 {
	if n == 0 {
		return 7
	}
	return uint8(min(max(n, 0), 7))
}

// Limit cuts what was asked for to what the peer, by its request, and the device do.
func Limit(p *abi.CMParam, serve, reads, device int) {
	p.ResponderResources = uint8(min(int(p.ResponderResources), serve, device))
	p.InitiatorDepth = uint8(min(int(p.InitiatorDepth), reads, device))
}
