package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"urdma/inspect"
	"urdma/reason/words"
	"urdma/verbs"
	"urdma/verbs/probe"
)

// explain says why connecting failed, and what to do.
func explain(o *Options, err error) error {
	var rejected *verbs.RejectedError
	switch {
	case errors.As(err, &rejected):
		return explainReject(o, rejected)
	case errors.Is(err, syscall.ENETUNREACH):
		return explainNoRoute(snapshotOf(o), o.Peer, err)
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

// explainNoRoute says why no port leads to the peer, an address or a host's name.
func explainNoRoute(snap *inspect.Snapshot, peer string, err error) error {
	to, unknown := net.DefaultResolver.LookupNetIP(context.Background(), "ip", peer)
	if snap == nil || unknown != nil {
		return err
	}
	var ports []words.Port
	for i := range snap.Ports {
		if own, err := netip.ParsePrefix(snap.Ports[i].Address); err == nil {
			ports = append(ports, words.Port{Name: snap.Ports[i].Name, Network: own})
		}
	}
	return fmt.Errorf("%s (%w)", words.NoRoute(to[0].Unmap(), ports), err)
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
