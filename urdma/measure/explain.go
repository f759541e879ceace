package measure

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"urdma/inspect"
	"urdma/verbs"
	"urdma/verbs/probe"
)

// explain says why connecting failed, and what to do.
func explain(o *Options, err error) error {
	var rejected *verbs.RejectedError
	switch {
	case errors.As(err, &rejected):
		return explainReject(o, rejected)
	case errors.Is(err, syscall.ENETUNREACH) && onLoopback(snapshotOf(o), o.Peer) != "":
		return fmt.Errorf("nobody has %s: its network is that of the loopback port %s, on which only programs of this "+
			"urdmad are; another vdev reaches other hosts (%w)",
			o.Peer, onLoopback(snapshotOf(o), o.Peer), err)
	case errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("no route to %s: %s; a port in its network, or \"gateway\" in urdma.json, is needed (%w)", o.Peer,
			ownPorts(o), err)
	case errors.Is(err, verbs.ErrNoWay):
		return fmt.Errorf("nobody answers ARP or neighbour discovery for %s: the host is down, in another network, or has "+
			"not this address (%w)", o.Peer, err)
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no urdmad answers at %s: none runs there, it has no port with this address, or something "+
			"between drops its packets "+
			"(on udp ports UDP port 30035 must be open; otherwise the ports of both hosts must be on one network) (%w)", o.Peer,
			err)
	case errors.Is(err, probe.ErrForeign), errors.Is(err, probe.ErrVersion):
		return fmt.Errorf("what listens at %s, port %d, is not urdmad's responder, or of another version (%w)", o.Peer,
			probe.Port, err)
	}
	return err
}

// explainReject says why a host that answers refuses to be pinged.
func explainReject(o *Options, rejected *verbs.RejectedError) error {
	if snap := snapshotOf(o); len(rejected.PrivateData) == 0 && snap != nil && byTCP(snap, o.Peer) {
		return fmt.Errorf("nothing listens on TCP port %d at %s: no urdmad runs there, its port with this address is no "+
			"tcp port, its responder is off (\"responder\" in its urdma.json), or its \"allow\" leaves this host out",
			probe.Port, o.Peer)
	}
	answer, err := probe.ParseAnswer(rejected.PrivateData)
	why := "its responder is off (\"responder\" in its urdma.json), or it is of a version without one"
	switch {
	case err == nil && answer.Status == probe.NotForYou:
		why = "\"responder_allow\" in its urdma.json does not have this host's network"
	case err == nil && answer.Status == probe.OtherVersion, errors.Is(err, probe.ErrVersion):
		why = "it is of a version that measures differently; use the same urdma on both hosts"
	}
	return fmt.Errorf("%s answers, but refuses: %s", o.Peer, why)
}

// byTCP reports whether a peer is reached over TCP, where the kernel of a host without urdmad refuses the
// connection. The port whose network has the address decides, or else all ports.
func byTCP(snap *inspect.Snapshot, address string) bool {
	peer, _ := netip.ParseAddr(address)
	all := len(snap.Ports) > 0
	for i := range snap.Ports {
		p := &snap.Ports[i]
		if own, err := netip.ParsePrefix(p.Address); err == nil && own.Contains(peer) {
			return p.Driver == "tcp"
		}
		all = all && p.Driver == "tcp"
	}
	return all
}

// onLoopback is the name of the loopback port whose network contains the address, or "".
func onLoopback(snap *inspect.Snapshot, address string) string {
	peer, err := netip.ParseAddr(address)
	if snap == nil || err != nil {
		return ""
	}
	for i := range snap.Ports {
		p := &snap.Ports[i]
		if own, err := netip.ParsePrefix(p.Address); p.Driver == "loopback" && err == nil && own.Contains(peer) {
			return p.Name + " " + p.Address
		}
	}
	return ""
}

// snapshotOf is nil if the local urdmad can't be asked.
func snapshotOf(o *Options) *inspect.Snapshot {
	s, err := inspect.Open(o.Socket)
	if err != nil {
		return nil
	}
	defer s.Close()
	snap, err := s.Fetch()
	if err != nil {
		return nil
	}
	return snap
}

// ownPorts lists the networks of the local ports.
func ownPorts(o *Options) string {
	snap := snapshotOf(o)
	if snap == nil {
		return "the urdmad here can't be asked for its ports"
	}
	var list []string
	for i := range snap.Ports {
		list = append(list, snap.Ports[i].Name+" "+snap.Ports[i].Address)
	}
	return "the urdmad here has " + strings.Join(list, ", ")
}

// checkMTU reads as many bytes as fit into one packet of the port, over a new connection. It returns "" if the peer
// answers, otherwise what is wrong.
func checkMTU(ctx context.Context, o *Options, mtu int) string {
	w, err := connect(ctx, o)
	if err != nil {
		return ""
	}
	defer w.close()
	if _, err := w.read(ctx, min(2*mtu, len(w.memory.Bytes()))); err == nil || ctx.Err() != nil {
		return ""
	}
	return fmt.Sprintf("small packets are answered, those of the port's MTU of %d bytes are not: something on the way "+
		"to %s takes less; "+
		"set \"mtu\" in urdma.json to what it takes, on both hosts", mtu, o.Peer)
}
