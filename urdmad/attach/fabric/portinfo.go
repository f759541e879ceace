package fabric

import "encoding/binary"

// portInfo is the attribute PortInfo (IBA table 155), big-endian.
type portInfo [smpDataEnd - smpData]byte

const (
	offLID          = 16
	offSMLID        = 18
	offCapabilities = 20
	offLease        = 26
	offLocalPort    = 28
	offWidths       = 29 // enabled, supported, active
	offState        = 32 // LinkSpeedSupported, PortState
	offPhysical     = 33 // PortPhysicalState, LinkDownDefaultState
	offProtectLMC   = 34 // M_KeyProtectBits, LMC
	offSpeeds       = 35 // active, enabled
	offMTUSMSL      = 36 // NeighborMTU, MasterSMSL
	offVLCap        = 37
	offHighLimit    = 38
	offMTUCap       = 41
	offHOQ          = 42
	offOperVLs      = 43
	offViolations   = 44 // violation counters of M_Keys, P_Keys, Q_Keys
	offGUIDCap      = 50
	offTimeout      = 51 // ClientReregister, SubnetTimeOut
	offRespTime     = 52
	offErrorLimits  = 53
)

// PortState and PortPhysicalState.
const (
	stateDown, stateInit, stateArmed, stateActive = 1, 2, 3, 4
	physicalPolling, physicalDisabled, physicalUp = 2, 3, 5
)

// Bits of the CapabilityMask.
const (
	capIsSM        = 1 << 1
	capTrap        = 1 << 3
	capSLMapping   = 1 << 6
	capSystemImage = 1 << 11
	capCM          = 1 << 16
	capReregister  = 1 << 25
)

// 40 Gb/s: four lanes of 10.
const (
	width4X, width1Xor4X       = 2, 3
	speedQDR, speedSDRDDRorQDR = 4, 7
)

func newPortInfo(kind nodeType, num int) (p portInfo) {
	if kind == channelAdapter {
		p.setCapability(capTrap|capSLMapping|capSystemImage|capCM|capReregister, true)
		p[offGUIDCap] = 1
	} else if num == 0 {
		p.setCapability(capTrap|capSystemImage, true)
		p[offGUIDCap] = 1
	}
	p[0+8], p[1+8] = 0xfe, 0x80
	p[offLocalPort] = byte(num)
	p[offWidths], p[offWidths+1], p[offWidths+2] = width1Xor4X, width1Xor4X, width4X
	p[offSpeeds] = speedQDR<<4 | speedSDRDDRorQDR
	p[offState] = speedSDRDDRorQDR<<4 | stateDown
	p[offPhysical] = physicalPolling<<4 | physicalPolling
	p[offVLCap] = 1 << 4
	p[offOperVLs] = 1 << 4
	p[offTimeout], p[offRespTime] = 18, 16 // 1.07 s, 0.27 s
	p.setMTU(mtu4096)
	if kind == switchNode && num == 0 { // port 0 of a switch has no link
		p.setState(stateActive, physicalUp)
	}
	return p
}

// clientReregister is the ClientReregister bit in the byte of SubnetTimeOut.
const clientReregister = 1 << 7

func (p *portInfo) lid() uint16          { return binary.BigEndian.Uint16(p[offLID:]) }
func (p *portInfo) smLID() uint16        { return binary.BigEndian.Uint16(p[offSMLID:]) }
func (p *portInfo) lmc() byte            { return p[offProtectLMC] & 7 }
func (p *portInfo) capabilities() uint32 { return binary.BigEndian.Uint32(p[offCapabilities:]) }
func (p *portInfo) state() byte          { return p[offState] & 0xf }
func (p *portInfo) physical() byte       { return p[offPhysical] >> 4 }
func (p *portInfo) mtu() byte            { return p[offMTUSMSL] >> 4 }
func (p *portInfo) mtuCap() byte         { return p[offMTUCap] & 0xf }

func (p *portInfo) setSMLID(lid uint16) { binary.BigEndian.PutUint16(p[offSMLID:], lid) }

func (p *portInfo) setCapability(bits uint32, on bool) {
	c := p.capabilities() &^ bits
	if on {
		c |= bits
	}
	binary.BigEndian.PutUint32(p[offCapabilities:], c)
}

func (p *portInfo) setState(state, physical byte) {
	p[offState] = p[offState]&0xf0 | state
	p[offPhysical] = p[offPhysical]&0xf | physical<<4
}

// mtu4096 is the code of MTU 4,096; each lower code means half of the MTU, down to 256.
const mtu4096 = 5

func (p *portInfo) setMTU(code byte) {
	p.setNeighborMTU(code)
	p[offMTUCap] = code
}

func (p *portInfo) setNeighborMTU(code byte) { p[offMTUSMSL] = p[offMTUSMSL]&0xf | code<<4 }

func (e *endpoint) setLID(lid uint16) { binary.BigEndian.PutUint16(e.info[offLID:], lid) }

// setMTU sets the largest MTU that fits into so many bytes.
func (e *endpoint) setMTU(bytes int) {
	code := byte(1)
	for size := 512; size <= bytes && code < mtu4096; size *= 2 {
		code++
	}
	e.info.setMTU(code)
}

// has reports whether a packet to lid is for this port.
func (e *endpoint) has(lid uint16) bool {
	base := e.info.lid()
	return base != 0 && lid&^(1<<e.info.lmc()-1) == base
}

// train brings the link up or down, at both ends, depending on the cable and on whether a port is
// disabled. A link that comes up is in state Initialize; the subnet manager does the rest.
func (e *endpoint) train() {
	up := e.cable && !e.off && !e.peer.off
	for _, end := range []*endpoint{e, e.peer} {
		switch {
		case end.off:
			end.down(physicalDisabled)
		case !up:
			end.down(physicalPolling)
		case end.info.state() == stateDown:
			end.info.setState(stateInit, physicalUp)
		}
	}
}

// plug sets whether the cable between both ends can carry packets.
func (e *endpoint) plug(carries bool) {
	e.cable, e.peer.cable = carries, carries
	e.train()
}

// retrain takes the link down and up again, if possible.
func (e *endpoint) retrain() {
	for _, end := range []*endpoint{e, e.peer} {
		end.down(physicalPolling)
	}
	e.train()
}

// down takes one end of a link down. The counters of devices come from their ports.
func (e *endpoint) down(physical byte) {
	if e.info.state() != stateDown && e.simulated() {
		e.counters.LinkDowns++
	}
	e.info.setState(stateDown, physical)
}

// simulated reports whether neither end of the link is a port of urdmad.
func (e *endpoint) simulated() bool { return e.device < 0 && e.peer.device < 0 }

// joined reports whether packets can pass through the port.
func (e *endpoint) joined() bool { return e.info.physical() == physicalUp && e.peer != nil }

// set carries out Set(PortInfo) with the values p.
func (e *endpoint) set(p *portInfo) status {
	if s := e.checkSet(p); s != statusOK {
		return s
	}
	q := &e.info
	if lid := p.lid(); e.num == 0 || e.node.kind == channelAdapter {
		e.setLID(lid)
		copy(q[:offLID], p[:offLID])
		q.setSMLID(p.smLID())
		copy(q[offLease:offLocalPort], p[offLease:])
		q[offProtectLMC] = p[offProtectLMC] & 0xc7
		q[offTimeout] = p[offTimeout] & 0x1f
		if p[offTimeout]&clientReregister != 0 {
			e.reregistered++
		}
	}
	keep := func(at int, mask byte) {
		if p[at]&mask != 0 { // 0: no change
			q[at] = q[at]&^mask | p[at]&mask
		}
	}
	if p[offWidths] != 0xff {
		keep(offWidths, 0xff)
	}
	if p[offSpeeds]&0xf != 0xf {
		keep(offSpeeds, 0x0f)
	}
	keep(offPhysical, 0x0f)
	keep(offMTUSMSL, 0xf0)
	keep(offOperVLs, 0xf0)
	q[offMTUSMSL] = q[offMTUSMSL]&0xf0 | p[offMTUSMSL]&0xf
	q[offHighLimit], q[offHOQ], q[offErrorLimits] = p[offHighLimit], p[offHOQ], p[offErrorLimits]
	q[offOperVLs] = q[offOperVLs]&0xf0 | p[offOperVLs]&0xf
	copy(q[offViolations:offGUIDCap], p[offViolations:])
	e.command(p.state(), p.physical())
	return statusOK
}

// checkSet returns an error status if p has values that cannot be set, before anything is
// changed.
func (e *endpoint) checkSet(p *portInfo) status {
	lid := p.lid()
	switch {
	case (e.num == 0 || e.node.kind == channelAdapter) && (lid == 0 || lid > maxLID):
		return statusBadValue
	case p.state() > stateActive || p.physical() > physicalDisabled,
		p.state() == stateInit,
		p.state() == stateArmed && e.info.state() != stateInit && e.info.state() != stateArmed,
		p.state() == stateActive && e.info.state() != stateArmed && e.info.state() != stateActive,
		p.mtu() > e.info.mtuCap(),
		p[offOperVLs]>>4 > e.info[offVLCap]>>4:
		return statusBadValue
	}
	return statusOK
}

// command sets the port's state as in Set(PortInfo); 0 means no change.
func (e *endpoint) command(state, physical byte) {
	if e.peer == nil {
		return
	}
	switch {
	case physical == physicalDisabled:
		e.off = true
		e.train()
	case physical != 0: // retrain the link
		e.off = false
		e.retrain()
	case state == stateDown:
		e.retrain()
	case state != 0:
		e.info.setState(state, e.info.physical())
	}
}
