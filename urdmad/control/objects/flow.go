package objects

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/rawpacket"
	"urdma/verbs/abi"
)

// Flow selects frames for a queue pair of type RAW_PACKET.
type Flow struct {
	control.Base
	pair *QP
	wire *rawpacket.Wire
	flow *rawpacket.Flow
}

// hasRaw returns an error if a port has no raw packets.
func hasRaw(s *control.Server, dev int) error {
	switch d := &s.Devices[dev]; {
	case !d.Frames:
		return fmt.Errorf("control: the port %s carries no Ethernet frames: %w", d.Name, syscall.EOPNOTSUPP)
	case d.RawPackets == abi.RawOff:
		return fmt.Errorf("control: ports[%d].raw_packets is \"off\": %w", dev, syscall.EPERM)
	}
	return nil
}

// mayCreateRaw returns an error if no port of a device has raw packets, or if the client may not use them.
func mayCreateRaw(x *control.Session, first int) (err error) {
	for i := range x.Server().Ports(first) {
		if err = hasRaw(x.Server(), first+i); err == nil {
			break
		}
	}
	if err == nil && !x.Owner.MayUseRawPackets(x.UnixConn) {
		return fmt.Errorf("control: raw packets need CAP_NET_RAW, which the client lacks: %w", syscall.EPERM)
	}
	return err
}

const maxPriority = 1<<16 - 1

// layers are the layers of flows that urdmad knows.
const layers = abi.FlowVLAN | abi.FlowIPv4 | abi.FlowIPv6 | abi.FlowTCP | abi.FlowUDP

// checkFlow checks what does not depend on the queue pair.
func checkFlow(m *abi.CreateFlowRequest) error {
	switch {
	case m.Type > abi.FlowSniffer || m.Layers&^layers != 0 || m.Flags&^abi.FlowFlagsDontTrap != 0:
		return fmt.Errorf("control: a flow of type %d with flags %#x and layers %#x: %w", m.Type, m.Flags, m.Layers,
			syscall.EOPNOTSUPP)
	case m.Priority > maxPriority:
		return fmt.Errorf("control: priority is %d, allowed: 0 to %d: %w", m.Priority, maxPriority, syscall.EINVAL)
	case m.Type != abi.FlowNormal && (m.Flags != 0 || m.Layers != 0 || m.Mask != [abi.FlowKey]byte{}):
		return fmt.Errorf("control: a flow of type %d has no specifications and flags: %w", m.Type, syscall.EINVAL)
	}
	return nil
}

func (q *QP) createFlow(m *abi.CreateFlowRequest, r *control.Reply) error {
	x := q.Session
	switch q.QP.Type {
	case abi.QPTypeRawPacket:
	case abi.QPTypeUD: // Linux allows such flows
		return fmt.Errorf("control: flows for a queue pair of type UD: %w", syscall.EOPNOTSUPP)
	default:
		return fmt.Errorf("control: a queue pair of type %s, and flows are for RAW_PACKET: %w",
			abi.QPTypeText(q.QP.Type), syscall.EINVAL)
	}
	if m.Port < 1 || m.Port > q.QP.Ports {
		return fmt.Errorf("control: the flow's port is %d, allowed: 1 to %d: %w", m.Port, q.QP.Ports, syscall.EINVAL)
	}
	dev := q.Context.Dev + int(m.Port) - 1
	if err := checkFlow(m); err != nil {
		return err
	}
	if err := hasRaw(x.Server(), dev); err != nil {
		return err
	}
	if m.Type == abi.FlowSniffer && x.Server().Devices[dev].RawPackets != abi.RawAll {
		return fmt.Errorf("control: a sniffer needs \"all\" in ports[%d].raw_packets: %w", dev, syscall.EPERM)
	}
	bill := &account.Amounts{account.Flows: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	var resp abi.HandleMessage
	x.Do(func() {
		raw := x.Worker().Engine.Raw
		f := &Flow{pair: q, wire: raw.Wire(dev), flow: raw.NewFlow(q.QP, dev, m)}
		f.wire.Add(f.flow)
		resp.Handle = x.Add(f, bill)
	})
	q.flows++
	*r = control.Respond(&resp)
	return nil
}

func (f *Flow) destroyFlow(*abi.HandleMessage, *control.Reply) error {
	f.Session.Do(func() {
		f.wire.Remove(f.flow)
		f.Remove()
	})
	f.pair.flows--
	return nil
}

// End implements control.Object.
func (f *Flow) End() *memfd.Shared {
	f.wire.Remove(f.flow)
	return nil
}
