package serve

import (
	"errors"
	"fmt"
	"net"

	"urdma/config"
	"urdma/dpdk"
	"urdma/dpdk/port"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rawpacket"
	"urdma/urdmad/core/steer"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// Open opens the ports. Errors about settings that do not fit the machine use the names of the
// configuration.
func (c *Core) Open() (err error) {
	if err := placePorts(c.Config); err != nil {
		return err
	}
	c.Ports, c.closePorts, err = dpdk.OpenPorts(Specs(c.Config), c.Config.EALArgs, c.Log)
	var wrong *dpdk.SettingError
	if errors.As(err, &wrong) {
		return c.Config.PortError(wrong.Port, wrong.Setting, wrong.Allowed)
	}
	if err == nil {
		c.claimAddresses()
	}
	return err
}

// Specs returns the parameters for the drivers from a configuration.
func Specs(cfg *config.Config) []dpdk.Spec {
	var out []dpdk.Spec
	for _, p := range cfg.Ports {
		s := dpdk.Spec{Name: p.Name, Vdev: p.Vdev, PCI: p.PCIAddress, MTU: p.MTU, RaiseMTU: p.RaiseMTU, VLAN: p.VLAN,
			RxDesc: p.RxDesc, TxDesc: p.TxDesc,
			Address: p.Address.Addr(), Allow: p.Allow, PeerQueue: steer.PeerQueue}
		if p.RoCE() {
			s.PeerQueue = steer.PeerQueueRoCE
		}
		if p.UDP() && p.RoCE() {
			s.Vdev, s.ECN, s.Renumber = fmt.Sprintf("udp,port=%d", p.SocketPort()), true, roce.Renumber
		}
		if n := len(cfg.Workers); n > 1 {
			s.Queues = n
			s.Filter, s.QueueOf, s.BySource = steer.SocketFilter(n),
				func(number int) int { return wire.WorkerOf(uint32(number), n) }, p.RoCE()
			if p.RoCE() {
				s.Filter = steer.PacketFilter(n)
			}
		}
		if mac, err := net.ParseMAC(p.MAC); err == nil { // "" keeps the device's address; config has checked the syntax
			copy(s.MAC[:], mac)
		}
		out = append(out, s)
	}
	return out
}

// rawPackets are the values of the setting raw_packets.
var rawPackets = map[string]uint32{config.RawOff: abi.RawOff, config.RawNonIP: abi.RawNonIP, config.RawAll: abi.RawAll}

// carriesFrames reports whether a port carries Ethernet frames.
func carriesFrames(info port.Info) bool { return info.Wire && !info.Datagrams }

// openRaw makes what the workers share of ports with raw packets.
func (c *Core) openRaw() {
	c.raw = make([]*rawpacket.Wire, len(c.Ports))
	for i, p := range c.Config.Ports {
		if access := rawPackets[p.RawPackets]; access != abi.RawOff && carriesFrames(c.Ports[i].Info()) {
			c.raw[i] = &rawpacket.Wire{Access: access}
		}
	}
}

func addressOf(p *config.Port) netif.Address {
	return netif.Address{Prefix: p.Address, Gateway: p.Gateway, SocketPort: p.SocketPort()}
}
