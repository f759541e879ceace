package control

import (
	"fmt"
	"syscall"
)

// This file holds what may be had: per client as urdma.json's limits say, and
// by all clients together as the machine and urdma.json say. account.go counts.

// Limits bounds what one client may own; Clients bounds their number. 0 is no
// limit.
type Limits struct {
	QueuePairs, MemoryRegions, CompletionQueues, ProtectionDomains int
	Contexts, CompletionChannels, EventChannels, IDs, Files        int
	Mappings                                                       int
	RegisteredBytes, QueueBytes                                    uint64
	Clients                                                        int
	// UserShare is how many percent of what there is for all clients one
	// user's may have; see owner.admin for who is exempt.
	UserShare int
}

// Totals is what all clients together may have of urdmad's process. 0 is no
// limit.
type Totals struct {
	Descriptors, Mappings, QueueBytes uint64
}

// SetLimits changes what clients may own from now on, from any goroutine. What
// they have already stays.
func (s *Server) SetLimits(l Limits) { s.changed.Store(&l) }

func (s *Server) limits() *Limits {
	if l := s.changed.Load(); l != nil {
		return l
	}
	return &s.Limits
}

// kind says of a resource what a client may have and what there is for all, 0
// for no limit, and what the log calls the two.
type kind struct {
	setting string
	each    func(*Limits) uint64
	what    string
	all     func(*Server) uint64
}

var kinds = [resources]kind{
	contexts:           {setting: "contexts", each: func(l *Limits) uint64 { return uint64(l.Contexts) }},
	domains:            {setting: "protection_domains", each: func(l *Limits) uint64 { return uint64(l.ProtectionDomains) }},
	files:              {setting: "files", each: func(l *Limits) uint64 { return uint64(l.Files) }},
	regions:            {setting: "memory_regions", each: func(l *Limits) uint64 { return uint64(l.MemoryRegions) }},
	registeredBytes:    {setting: "registered_bytes", each: func(l *Limits) uint64 { return l.RegisteredBytes }},
	completionChannels: {setting: "completion_channels", each: func(l *Limits) uint64 { return uint64(l.CompletionChannels) }},
	completionQueues:   {setting: "completion_queues", each: func(l *Limits) uint64 { return uint64(l.CompletionQueues) }},
	queuePairs:         {setting: "queue_pairs", each: func(l *Limits) uint64 { return uint64(l.QueuePairs) }},
	eventChannels:      {setting: "event_channels", each: func(l *Limits) uint64 { return uint64(l.EventChannels) }},
	ids:                {setting: "cm_ids", each: func(l *Limits) uint64 { return uint64(l.IDs) }},
	queueBytes: {setting: "queue_bytes", each: func(l *Limits) uint64 { return l.QueueBytes },
		what: "bytes of queues (half of the machine's memory)", all: func(s *Server) uint64 { return s.Totals.QueueBytes }},
	mappings: {setting: "mappings", each: func(l *Limits) uint64 { return uint64(l.Mappings) },
		what: "mappings (vm.max_map_count)", all: func(s *Server) uint64 { return s.Totals.Mappings }},
	descriptors: {what: "descriptors (RLIMIT_NOFILE)", all: func(s *Server) uint64 { return s.Totals.Descriptors }},
	fallbacks:   {what: "clients on the fallback path", all: func(*Server) uint64 { return maxFallbacks }},
	clients:     {what: clientsLimit, all: func(s *Server) uint64 { return uint64(s.limits().Clients) }},
}

// maxFallbacks bounds the threads of the fallback path.
const maxFallbacks = 1024

const clientsLimit = "clients (limits.clients)"

// overLimit refuses one more of what a client may have.
func (k *kind) overLimit(limit uint64) error {
	return fmt.Errorf("control: limits.%s is %d, and the client has reached it: %w", k.setting, limit, syscall.ENOMEM)
}

// exhausted refuses one more of what there is for all.
func (k *kind) exhausted(total uint64) error {
	if k.what == clientsLimit {
		return fmt.Errorf("control: limits.clients is %d, and there are as many: %w", total, k.errno())
	}
	return fmt.Errorf("control: clients may have %d %s, and there are as many: %w", total, k.what, k.errno())
}

// errno is what a client beyond the limit of all is told.
func (k *kind) errno() syscall.Errno {
	if k.what == clientsLimit {
		return syscall.EDQUOT
	}
	return syscall.ENOMEM
}

// shareOf is what one user's clients may have of total; 0 is no limit.
func (l *Limits) shareOf(total uint64) uint64 {
	if total == 0 || l.UserShare <= 0 || l.UserShare >= 100 {
		return total
	}
	return max(1, total/100*uint64(l.UserShare)+total%100*uint64(l.UserShare)/100)
}

// roomOnPort refuses a queue pair beyond a port's max_qp, or beyond a user's
// share of it; on the engine's thread.
func (a *account) roomOnPort(dev int) error {
	d := &a.s.Devices[dev]
	if d.MaxQP <= 0 {
		return nil
	}
	if d.pairs >= d.MaxQP {
		return fmt.Errorf("control: ports[%d].max_qp is %d, and %s has as many queue pairs: %w", dev, d.MaxQP, d.Name, syscall.ENOMEM)
	}
	if share := a.s.limits().shareOf(uint64(d.MaxQP)); !a.owner.admin && uint64(d.pairsOf[a.owner.uid]) >= share {
		return fmt.Errorf("control: limits.user_share leaves user %d %d of %s's %d queue pairs, and it has as many: %w",
			a.owner.uid, share, d.Name, d.MaxQP, syscall.ENOMEM)
	}
	return nil
}

// countPair counts a queue pair that came (1) or went (-1).
func (d *Device) countPair(uid, by int) {
	d.pairs += by
	if d.pairsOf == nil {
		d.pairsOf = map[int]int{}
	}
	if d.pairsOf[uid] += by; d.pairsOf[uid] == 0 {
		delete(d.pairsOf, uid)
	}
}
