package cm

import (
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
)

// Option is an option of level RDMA_OPTION_ID (rdma_set_option(3)), numbered as in rdma_cma.h.
type Option uint32

// Options of an id.
const (
	OptionTOS        Option = 0 // TOS of a connection's packets
	OptionReuseAddr  Option = 1 // the address may be shared with an id that has this option too and doesn't listen
	OptionAFOnly     Option = 2 // :: means only IPv6 addresses
	OptionAckTimeout Option = 3 // see Start.AckTimeout
)

// options are the values from SetOption.
type options struct {
	reuseAddr, afOnly bool
	ackTimeout        uint8
	ackTimeoutSet     bool
	trafficClass      uint8 // only packets of RoCEv2 carry it
}

// maxAckTimeout is the greatest value of an InfiniBand time-out, which has 5 bits.
const maxAckTimeout = 31

// SetOption sets an option; ENOSYS if there is none of that number. The states in which it may be set are
// those of the kernel's cma.c.
func (m *Manager) SetOption(id *ID, o Option, value uint32) error {
	p := &id.options
	switch o {
	case OptionTOS:
		p.trafficClass = uint8(value)
	case OptionReuseAddr:
		if id.state != idle && (value == 0 || id.state == listening) {
			return id.in(idle)
		}
		p.reuseAddr = value != 0
	case OptionAFOnly:
		if err := id.in(idle, bound); err != nil {
			return err
		}
		p.afOnly = value != 0
	case OptionAckTimeout:
		if value > maxAckTimeout {
			return fmt.Errorf("cm: ack timeout %d, allowed: 0 to %d: %w", value, maxAckTimeout, einval)
		}
		p.ackTimeout, p.ackTimeoutSet = uint8(value), true
	default:
		return syscall.ENOSYS
	}
	return nil
}

// keep stores the parameters of a connection that the id's program has given.
func (id *ID) keep(qp QueuePair, p *Param) {
	t := &id.terms
	t.QP, t.RNRRetry, t.RetryCount = qp, p.RNRRetryCount, p.RetryCount
	t.AckTimeoutSet, t.AckTimeout = id.options.ackTimeoutSet, id.options.ackTimeout
}

// packetLifeTime is the assumed lifetime of packets, as an InfiniBand time-out: the value of the kernel's
// rdma_cm without a subnet manager.
const packetLifeTime = 18

// timeWait returns how long the queue pair of an ended connection is not reused.
func (id *ID) timeWait() clock.Time {
	t := uint8(packetLifeTime)
	if id.options.ackTimeoutSet {
		t = min(t, id.options.ackTimeout)
	}
	return 4096 << t
}
