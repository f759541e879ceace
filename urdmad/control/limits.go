package control

import (
	"fmt"
	"syscall"
)

// This file holds clients to urdma.json's limits. Each refusal names the setting
// in the log.

// Limits bounds what one client may own; Clients bounds their number.
type Limits struct {
	QueuePairs, MemoryRegions, CompletionQueues, ProtectionDomains int
	RegisteredBytes                                                uint64
	Clients                                                        int
}

// usage counts against Limits.
type usage struct {
	qps, mrs, cqs, pds int
	bytes              uint64
}

// SetLimits changes what clients may own from now on, from any goroutine. What
// they have already stays.
func (s *Server) SetLimits(l Limits) { s.changed.Store(&l) }

func (s *Server) limits() Limits {
	if l := s.changed.Load(); l != nil {
		return *l
	}
	return s.Limits
}

// overLimit refuses one more of what a client may have.
func overLimit(setting string, limit uint64) error {
	return fmt.Errorf("control: limits.%s is %d, and the client has reached it: %w", setting, limit, syscall.ENOMEM)
}

// admit counts one more client, or refuses it.
func (s *Server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.limits().Clients; limit > 0 && s.clients >= limit {
		return fmt.Errorf("control: limits.clients is %d, and there are as many: %w", limit, syscall.EDQUOT)
	}
	s.clients++
	return nil
}

// roomOnPort refuses a queue pair beyond a port's max_qp; on the engine's thread.
func (s *Server) roomOnPort(dev int) error {
	if limit := s.Devices[dev].MaxQP; limit > 0 && s.Devices[dev].pairs >= limit {
		return fmt.Errorf("control: ports[%d].max_qp is %d, and %s has as many queue pairs: %w", dev, limit, s.Devices[dev].Name, syscall.ENOMEM)
	}
	return nil
}
