package dpdk

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"urdma/dpdk/netdev"
)

// borrowed is the kernel's network interface that a port of af_packet, af_xdp or tap uses. Other programs use
// or configure it, too. So the port restores what it changes, and the interface's state determines the port's
// link.
type borrowed struct {
	dev         *netdev.Interface
	oldMTU      int    // to be restored; 0: unchanged
	promiscuous bool   // another program or user had set the flag before
	promisc     int    // descriptor that keeps the interface promiscuous, or -1
	groups      int    // descriptor that makes it receive all multicast frames, or -1
	xdp         bool   // an XDP program passes frames to the port
	program     uint32 // the program's ID when the port was opened
	stop        func()
}

// borrow finds the interface of a port and sets the MTU of both. It is the interface's own, unless the
// configuration has a smaller one, or a larger one and RaiseMTU.
func (d *prepared) borrow(s *Spec, iface string, limit int) error {
	if iface == "" {
		return fmt.Errorf("dpdk: port %q: %s: iface=NAME is missing", s.label(), s.Vdev)
	}
	dev, err := netdev.ByName(iface)
	if err != nil {
		return fmt.Errorf("dpdk: port %q: %s: %w; %s", s.label(), s.Vdev, err, advice(s.device()))
	}
	d.borrowed = &borrowed{dev: dev, promisc: -1, groups: -1}
	now, err := dev.State()
	d.borrowed.promiscuous = now.Promiscuous
	switch {
	case err != nil || now.Gone:
		return fmt.Errorf("dpdk: port %q: network interface %s: gone again (%v)", s.label(), iface, err)
	case d.mtu == 0 && now.MTU < minMTU:
		return &SettingError{Port: s.label(), Setting: "vdev", Found: s.Vdev,
			Allowed: fmt.Sprintf("a network interface with an MTU of at least %d, not %d", minMTU, now.MTU)}
	case d.mtu == 0:
		d.mtu = min(now.MTU, limit)
	case d.mtu > now.MTU && !s.RaiseMTU:
		return &SettingError{Port: s.label(), Setting: "mtu", Found: d.mtu,
			Allowed: fmt.Sprintf("at most %d, the MTU of network interface %s, or nothing to take that; \"interface_mtu\": "+
				"\"raise\" raises it while urdmad runs", now.MTU, now.Name)}
	case d.mtu > now.MTU:
		if err := dev.SetMTU(d.mtu); err != nil {
			return fmt.Errorf("dpdk: port %q: %w (it has %d)", s.label(), err, now.MTU)
		}
		d.borrowed.oldMTU = now.MTU
	}
	return nil
}

// undoBorrow undoes the changes of a port that could not be opened.
func (d *prepared) undoBorrow() {
	if d.borrowed != nil {
		d.borrowed.close()
	}
}

// borrowByIndex finds the interface that a driver created, by its index.
func borrowByIndex(index uint32) (*borrowed, error) {
	dev, err := netdev.ByIndex(index)
	if err != nil {
		return nil, err
	}
	return &borrowed{dev: dev, promisc: -1, groups: -1}, nil
}

// started restores the promiscuous flag, which DPDK clears when it starts a device.
func (b *borrowed) started() error {
	if !b.promiscuous {
		return nil
	}
	return b.dev.SetPromiscuous()
}

// receiveAll makes the interface accept frames with any destination address.
func (b *borrowed) receiveAll() (err error) {
	b.promisc, err = b.dev.ReceiveAll()
	return err
}

// receiveGroups makes the interface accept all multicast frames, which include neighbour solicitations
// (IPv6).
func (b *borrowed) receiveGroups() (err error) {
	b.groups, err = b.dev.ReceiveGroups()
	return err
}

// follow keeps link the same as the interface's, and logs once when the interface is gone.
func (b *borrowed) follow(p *ethPort, log *slog.Logger) (err error) {
	b.stop, err = b.dev.Watch(func(s netdev.State) {
		if s.Gone {
			p.gone.Store(true)
			log.Error("the port's network interface is gone, and with it the port, until urdmad is started again", "port",
				p.info.Name)
		} else if s.MTU < p.info.MTU {
			log.Warn("the network interface's MTU is less than the port's: longer packets are lost",
				"port", p.info.Name, "interface", s.Name, "interface_mtu", s.MTU, "mtu", p.info.MTU)
		}
		// The socket's error from the link going down would make the first send fail.
		for i := range p.queues {
			p.queues[i].wake.clearError()
		}
		p.link.Set(s.Up)
		if b.xdp && !s.Gone {
			b.reportRemovedProgram(p.info.Name, s.Name, log)
		}
	})
	return err
}

// remember stores the ID of the port's XDP program.
func (b *borrowed) remember() {
	if !b.xdp {
		return
	}
	if x, err := b.dev.XDP(); err == nil {
		b.program = x.ID
	}
}

// replaced reports whether the interface runs another XDP program than the port's; closing the device would
// remove that one.
func (b *borrowed) replaced() bool {
	if b.program == 0 {
		return false
	}
	x, err := b.dev.XDP()
	return err == nil && x.ID != 0 && x.ID != b.program
}

// reportRemovedProgram logs once that the XDP program was removed: the port receives nothing then, and shows no
// other sign of it.
func (b *borrowed) reportRemovedProgram(port, iface string, log *slog.Logger) {
	if x, err := b.dev.XDP(); err != nil || x.ID != 0 {
		return // if the interface is gone, follow has logged that
	}
	b.xdp = false
	log.Error("the XDP program of the port's network interface was removed: the port receives nothing until urdmad is "+
		"started again",
		"port", port, "interface", iface)
}

// unfollow returns once no more calls set the link.
func (b *borrowed) unfollow() {
	if b.stop != nil {
		b.stop()
	}
	b.stop = nil
}

func (b *borrowed) close() {
	b.unfollow()
	for _, fd := range []int{b.promisc, b.groups} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if b.oldMTU != 0 {
		b.restoreMTU()
	}
	b.dev.Close()
}

// restoreMTU restores the MTU. It fails only if the interface is gone.
func (b *borrowed) restoreMTU() {
	_ = b.dev.SetMTU(b.oldMTU)
	b.oldMTU = 0
}
