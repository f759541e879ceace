package config

import (
	"fmt"
	"net"
	"net/netip"

	"urdma/verbs/personality"
)

// port checks the values of one port.
func (r *rules) port(at string, p *Port) {
	r.device(at, p)
	r.address(at, p)
	r.gateway(at+".gateway", p)
	r.mac(at+".mac_address", p)
	r.lid(at, p)
	r.vlan(at+".vlan", p)
	r.kernelInterface(at+".kernel_interface", p)
	r.allow(at+".allow", p)
	r.crc(at+".crc", p)
	r.rawPackets(at+".raw_packets", p)
	r.protocol(at, p)
	r.descriptors(at+".rx_desc_count", p.RxDesc)
	r.descriptors(at+".tx_desc_count", p.TxDesc)
}

func (r *rules) vlan(path string, p *Port) {
	if p.VLAN != 0 && !p.usesEAL() {
		r.refuse(path, "nothing, except on NICs and vdevs of DPDK's; the kernel has VLAN interfaces for udp and tcp")
	}
}

func (r *rules) kernelInterface(path string, p *Port) {
	v, err := ParseVdev(p.Vdev)
	if p.KernelInterface != "" && (err != nil || v.Kind == VdevLoopback || v.Kind == VdevUDP || v.OnInterface()) {
		r.refuse(path, "nothing, except on ports of frames that the kernel has no interface for: NICs, memif, vdevs of "+
			"DPDK's")
	}
}

// minDescriptors is the minimum of all drivers.
const minDescriptors = 32

func (r *rules) descriptors(path string, n int) {
	if n > 0 && n < minDescriptors {
		r.refuse(path, "")
	}
}

func (r *rules) crc(path string, p *Port) {
	if v, err := ParseVdev(p.Vdev); p.CRC == CRCAlways && (err != nil || !v.TCP) {
		r.refuse(path, "\"asked\", except on the vdev \"tcp\"")
	}
}

func (r *rules) rawPackets(path string, p *Port) {
	v, err := ParseVdev(p.Vdev)
	if p.RawPackets != RawOff && (err != nil || v.Kind == VdevLoopback || v.Kind == VdevUDP) {
		r.refuse(path, "\"off\", except on ports of frames: NICs, memif, vdevs of DPDK's")
	}
}

func (r *rules) protocol(at string, p *Port) {
	if !p.RoCE() {
		return
	}
	switch v, err := ParseVdev(p.Vdev); {
	case err != nil: // refused elsewhere
	case v.TCP, v.Kind == VdevLoopback:
		r.refuse(at+".protocol", fmt.Sprintf("\"trp\" on the vdev %q", v.Name))
	case v.Kind == VdevUDP && v.Port != roceUDPPort && v.Port != defaultUDPPort:
		r.refuse(at+".vdev", "\"udp\": RoCEv2 has UDP port 4791")
	case p.Placement == PlacementImmediate:
		r.refuse(at+".placement", "\"ordered\" with the protocol \"rocev2\"")
	}
}

func (r *rules) allow(path string, p *Port) {
	if len(p.Allow) > 0 && !p.UDP() {
		r.refuse(path, "nothing, except on the vdevs \"udp\" and \"tcp\"")
	}
	r.networks(path, p.Allow)
	for i, n := range p.Allow {
		if n.IsValid() && p.Address.IsValid() && n.Addr().Is4() != p.Address.Addr().Is4() {
			r.refuse(indexPath(path, i), fmt.Sprintf("a network of the family of %s, %s: no other host reaches the port",
				p.AddressSetting(), p.Address))
		}
	}
}

// networks refuses addresses with bits beyond their prefix length: the user may have meant a longer prefix, and a
// short one would let others in.
func (r *rules) networks(path string, list []netip.Prefix) {
	for i, n := range list {
		if !n.IsValid() || n != n.Masked() || n.Addr().Is4In6() {
			r.refuse(indexPath(path, i), "a network, such as \"10.2.0.0/16\" or \"fd00::/64\", without bits behind its "+
				"prefix length")
		}
	}
}

func (r *rules) device(at string, p *Port) {
	if p.PCIAddress != "" && p.Vdev != "" {
		r.refuse(at+".vdev", "either pci_address or vdev, not both")
	}
	if _, err := ParseVdev(p.Vdev); err != nil {
		r.refuse(at+".vdev", err.Error())
	}
}

// address checks that a port has one address, and that a host may have it.
func (r *rules) address(at string, p *Port) {
	four, six := at+".ipv4_address", at+".ipv6_address"
	switch {
	case r.has(four) && r.has(six):
		r.refuse(six, "ipv4_address or ipv6_address, not both: a machine with addresses of both families has two ports")
	case r.has(six):
		r.ipv6(six, p)
	case r.has(four):
		r.ipv4(four, p)
	default:
		r.errs = append(r.errs, r.doc.missing(four))
	}
}

// ipv6 refuses addresses that no host may have (RFC 4291).
func (r *rules) ipv6(path string, p *Port) {
	addr := p.Address.Addr()
	switch {
	case !p.Address.IsValid() || !addr.Is6() || addr.Is4In6():
		r.refuse(path, "")
	case addr.IsUnspecified() && (p.UDP() || p.KernelInterface != ""):
		// the kernel's choice
	case p.Address.Bits() == 0:
		r.refuse(path, "a prefix length from 1 to 128")
	case addr.IsMulticast(), addr.IsUnspecified(), addr.IsLoopback():
		r.refuse(path, "a unicast address other than :: and ::1")
	// the subnet-router anycast address (section 2.6.1)
	case p.Address.Bits() < 127 && addr == p.Address.Masked().Addr():
		r.refuse(path, fmt.Sprintf("an address other than the first of %s", p.Address.Masked()))
	case p.MTU != 0 && p.MTU < minMTU6:
		r.refuse(path, fmt.Sprintf("an MTU of at least %d bytes beside it (RFC 8200), or none", minMTU6))
	}
}

// minMTU6 is the smallest MTU of an IPv6 link, in bytes.
const minMTU6 = 1280

// ipv4 refuses addresses that no host may have (RFC 1122, section 3.2.1.3).
func (r *rules) ipv4(path string, p *Port) {
	addr := p.Address.Addr()
	switch {
	case !p.Address.IsValid() || !addr.Is4():
		r.refuse(path, "")
	case p.Address.Bits() == 0:
		r.refuse(path, "a prefix length from 1 to 32")
	case addr.IsLoopback() && p.Vdev != "loopback":
		r.refuse(path, "an address outside 127.0.0.0/8, which belongs on the vdev \"loopback\" alone")
	case addr.IsUnspecified() && (p.UDP() || p.KernelInterface != ""):
		// the kernel's choice
	case addr.IsMulticast(), addr.As4()[0] >= 240, addr.As4()[0] == 0:
		r.refuse(path, "a unicast address, 1.0.0.0 to 223.255.255.255")
	case p.Address.Bits() < 31 && (addr == p.Address.Masked().Addr() || addr == broadcast(p.Address)):
		r.refuse(path, fmt.Sprintf("an address other than the first and the last of %s", p.Address.Masked()))
	}
}

// broadcast is the last address of an IPv4 network; an IPv6 network has none.
func broadcast(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() {
		return netip.Addr{}
	}
	a := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}

func (r *rules) gateway(path string, p *Port) {
	if !r.has(path) || !p.Address.IsValid() {
		return
	}
	g := p.Gateway
	network := p.Address.Masked()
	edge := p.Address.Bits() < p.Address.Addr().BitLen()-1 && (g == network.Addr() || g == broadcast(p.Address))
	switch {
	case !g.IsValid():
		r.refuse(path, "")
	case g == p.Address.Addr():
		r.refuse(path, "an address other than the port's own")
	case g.Is6() && g.IsLinkLocalUnicast() && p.Address.Addr().Is6(): // usual for routers
	case !network.Contains(g) || edge:
		r.refuse(path, fmt.Sprintf("a host's address in the port's own network, %s", network))
	}
}

func (r *rules) mac(path string, p *Port) {
	if p.MAC == "" {
		return
	}
	mac, err := net.ParseMAC(p.MAC)
	zero := p.MAC == "00:00:00:00:00:00"
	if err != nil || zero || mac[0]&1 != 0 {
		r.refuse(path, "")
	}
}

// lid checks that with the transport "ib" the low half of the address can be a LID.
func (r *rules) lid(at string, p *Port) {
	if p.Transport != personality.IB || !p.Address.IsValid() ||
		p.Address.Addr().IsUnspecified() && (p.Address.Addr().Is6() || p.KernelInterface != "") {
		return
	}
	examples := "x.y.0.1 to x.y.191.255"
	if p.Address.Addr().Is6() {
		examples = "...:1 to ...:bfff"
	}
	if lid, ok := personality.UnicastLID(p.Address.Addr()); !ok {
		r.refuse(at+"."+p.AddressSetting(), fmt.Sprintf(
			"under the transport \"ib\" an address whose low 16 bits are a unicast LID, 0x%04X to 0x%04X (here 0x%04X): %s",
			personality.MinLID, personality.MaxLID, lid, examples))
	}
}
