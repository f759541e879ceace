package cm

import (
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
)

// Option is an option of level RDMA_OPTION_ID (rdma_set_option(3)), numbered as
// in rdma_cma.h.
type Option uint32

// Options of an id.
const (
	OptionTOS        Option = 0 // the byte of the IP header, of what a connection sends
	OptionReuseAddr  Option = 1 // may be bound where another is that has it set too and doesn't listen
	OptionAFOnly     Option = 2 // :: is the addresses of IPv6 alone
	OptionAckTimeout Option = 3 // see Start.AckTimeout
)

// options are what SetOption said.
type options struct {
	reuseAddr, afOnly bool
	ackTimeout        uint8
	ackTimeoutSet     bool
	trafficClass      uint8
}

// maxAckTimeout is what the 5 bits of an InfiniBand time-out hold.
const maxAckTimeout = 31

// SetOption sets an option; ENOSYS if there is none of that number. When it may
// be set is as in the kernel's cma.c.
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

// TrafficClass is what OptionTOS has set. Packets of RoCEv2 carry it, no others of ours.
func (id *ID) TrafficClass() uint8 { return id.options.trafficClass }

// keep settles what of a connection's terms the id's program says.
func (id *ID) keep(qp QueuePair, p *Param) {
	t := &id.terms
	t.QP, t.RNRRetry, t.RetryCount = qp, p.RNRRetryCount, p.RetryCount
	t.AckTimeoutSet, t.AckTimeout = id.options.ackTimeoutSet, id.options.ackTimeout
}

// packetLifeTime is how long a packet may be on its way, as an InfiniBand
// time-out: what the kernel's rdma_cm assumes where no subnet manager says it.
const packetLifeTime = 18

// timeWait is how long the queue pair of a connection that has ended is not used
// again.
func (id *ID) timeWait() clock.Time {
	t := uint8(packetLifeTime)
	if id.options.ackTimeoutSet {
		t = min(t, id.options.ackTimeout)
	}
	return 4096 << t
}
