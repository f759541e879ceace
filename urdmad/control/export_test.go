package control

import (
	"net/netip"

	"urdma/verbs/abi"
)

// AddrFrom4 makes an Addr of an IPv4 address and a port number.
func AddrFrom4(ip [4]byte, port uint16) abi.Addr {
	a, _ := abi.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4(ip), port)) // an IPv4 address has no zone to refuse
	return a
}

// FirstRequestTime is for tests.
const FirstRequestTime = firstRequestTime

// MaxWaiting is for tests.
const MaxWaiting = maxWaiting

// LinkEventsPerTurn is for tests.
const LinkEventsPerTurn = linkEventsPerTurn

// RemovedPerTurn is for tests.
const RemovedPerTurn = removedPerTurn

// Objects is how many objects all clients have; on the engine's thread.
func (s *Server) Objects() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		n += len(x.objects)
	}
	return n
}
