package account

import (
	"cmp"
	"fmt"
	"sync"
	"syscall"
)

// This file has the limits: per client from urdma.json, and for all clients together from the
// machine and urdma.json. account.go does the counting.

// Limits are the largest amounts that one client may hold; Clients limits the number of clients.
// 0 means no limit.
type Limits struct {
	QueuePairs, MemoryRegions, CompletionQueues, ProtectionDomains int
	SharedReceiveQueues                                            int
	Contexts, CompletionChannels, EventChannels, IDs, Files        int
	Mappings                                                       int
	RegisteredBytes, QueueBytes                                    uint64
	Clients                                                        int
	// UserShare is the percentage of each total that one user's clients may hold. Owner.Admin
	// names the users that are exempt.
	UserShare int
}

// Totals are the amounts of urdmad's own resources that all clients together may hold. 0 means no
// limit.
type Totals struct {
	Descriptors, Mappings, QueueBytes uint64
}

// SetLimits changes the limits from now on, from any goroutine. Clients keep the resources they
// already hold.
func (a *Accounts) SetLimits(l Limits) { a.changed.Store(&l) }

// Current returns the limits in force.
func (a *Accounts) Current() *Limits {
	if l := a.changed.Load(); l != nil {
		return l
	}
	return &a.Limits
}

// kind has the limit per client and the total of a resource, 0 for no limit, and their names in
// logs.
type kind struct {
	setting string
	each    func(*Limits) uint64
	what    string
	all     func(*Accounts) uint64
}

var kinds = [resources]kind{
	Contexts: {setting: "contexts", each: func(l *Limits) uint64 { return uint64(l.Contexts) }},
	Domains: {setting: "protection_domains",
		each: func(l *Limits) uint64 { return uint64(l.ProtectionDomains) }},
	Files:           {setting: "files", each: func(l *Limits) uint64 { return uint64(l.Files) }},
	Regions:         {setting: "memory_regions", each: func(l *Limits) uint64 { return uint64(l.MemoryRegions) }},
	RegisteredBytes: {setting: "registered_bytes", each: func(l *Limits) uint64 { return l.RegisteredBytes }},
	CompletionChannels: {setting: "completion_channels",
		each: func(l *Limits) uint64 { return uint64(l.CompletionChannels) }},
	CompletionQueues: {setting: "completion_queues", each: func(l *Limits) uint64 { return uint64(l.CompletionQueues) }},
	QueuePairs:       {setting: "queue_pairs", each: func(l *Limits) uint64 { return uint64(l.QueuePairs) }},
	SharedQueues: {setting: "shared_receive_queues",
		each: func(l *Limits) uint64 { return uint64(l.SharedReceiveQueues) }},
	EventChannels: {setting: "event_channels", each: func(l *Limits) uint64 { return uint64(l.EventChannels) }},
	IDs:           {setting: "cm_ids", each: func(l *Limits) uint64 { return uint64(l.IDs) }},
	QueueBytes: {setting: "queue_bytes", each: func(l *Limits) uint64 { return l.QueueBytes },
		what: "bytes of queues (half of urdmad's memory)", all: func(a *Accounts) uint64 { return a.Totals.QueueBytes }},
	Mappings: {setting: "mappings", each: func(l *Limits) uint64 { return uint64(l.Mappings) },
		what: "mappings (vm.max_map_count)", all: func(a *Accounts) uint64 { return a.Totals.Mappings }},
	Descriptors: {what: "descriptors (RLIMIT_NOFILE)", all: func(a *Accounts) uint64 { return a.Totals.Descriptors }},
	Fallbacks:   {what: "clients on the fallback path", all: func(*Accounts) uint64 { return maxFallbacks }},
	Flows:       {what: "flows", all: func(*Accounts) uint64 { return maxFlows }},
	Clients:     {what: clientsLimit, all: func(a *Accounts) uint64 { return uint64(a.Current().Clients) }},
}

// maxFallbacks is the largest number of threads for the fallback path.
const maxFallbacks = 1024

// maxFlows is the largest number of flows: a received frame is compared with each.
const maxFlows = 1024

const clientsLimit = "clients (limits.clients)"

// Usage is the amount of a resource in use, and its limit; 0 means no limit.
type Usage struct {
	Name          string // setting name in urdma.json's limits, or the name of a resource limited by the machine
	Used, Allowed uint64
}

// names are the names of resources without a setting.
var names = map[Resource]string{Descriptors: "descriptors", Fallbacks: "fallback_clients", Flows: "flows", Clients: "clients"}

func (r Resource) name() string { return cmp.Or(kinds[r].setting, names[r]) }

// usage lists the resources in use, with the limit that allowed returns.
func (l *ledger) usage(allowed func(*kind) uint64) (list []Usage) {
	for r := range resources {
		if used := l[r].Load(); used > 0 {
			list = append(list, Usage{Name: r.name(), Used: used, Allowed: allowed(&kinds[r])})
		}
	}
	return list
}

// Usage returns the client's resources in use and their limits.
func (a *Account) Usage() []Usage {
	now := a.of.Current()
	return a.used.usage(func(k *kind) uint64 {
		if k.each == nil {
			return 0
		}
		return k.each(now)
	})
}

// UserUsage returns the resources in use by all clients of the user, with the user's share of
// each total.
func (a *Account) UserUsage() []Usage {
	return a.user.usage(func(k *kind) uint64 {
		switch {
		case k.all == nil:
			return 0
		case a.Owner.Admin:
			return k.all(a.of)
		}
		return a.of.Current().shareOf(k.all(a.of))
	})
}

// Usage returns the resources in use by all clients together.
func (a *Accounts) Usage() []Usage {
	return a.all.usage(func(k *kind) uint64 {
		if k.all == nil {
			return 0
		}
		return k.all(a)
	})
}

// overLimit returns the error for a client that has reached its limit.
func (k *kind) overLimit(limit uint64) error {
	return fmt.Errorf("control: limits.%s is %d, and the client has reached it: %w", k.setting, limit, syscall.ENOMEM)
}

// exhausted returns the error for a resource whose total is reached.
func (k *kind) exhausted(total uint64) error {
	if k.what == clientsLimit {
		return fmt.Errorf("control: limits.clients is %d, and there are as many: %w", total, k.errno())
	}
	return fmt.Errorf("control: clients may have %d %s, and there are as many: %w", total, k.what, k.errno())
}

// errno returns the errno value that a client gets when a total is reached.
func (k *kind) errno() syscall.Errno {
	if k.what == clientsLimit {
		return syscall.EDQUOT
	}
	return syscall.ENOMEM
}

// shareOf returns how much of total one user's clients may hold; 0 means no limit.
func (l *Limits) shareOf(total uint64) uint64 {
	if total == 0 || l.UserShare <= 0 || l.UserShare >= 100 {
		return total
	}
	return max(1, total/100*uint64(l.UserShare)+total%100*uint64(l.UserShare)/100)
}

// Pairs returns how many queue pairs of a port a client may have if its user has no others. most
// is the port's limit; 0 means no limit.
func (a *Account) Pairs(most int) int {
	l := a.of.Current()
	share := most
	if !a.Owner.Admin {
		share = int(l.shareOf(uint64(most)))
	}
	switch {
	case l.QueuePairs == 0:
		return share
	case share <= 0:
		return l.QueuePairs
	}
	return min(share, l.QueuePairs)
}

// Pairs counts the queue pairs of a port. Its methods may be called from any goroutine.
type Pairs struct {
	mu    sync.Mutex
	count int
	of    map[int]int // by user ID
}

// Take counts one more queue pair of a user. It returns an error if the port already has most
// queue pairs (max_qp; 0 means no limit), or if the user has its share of them. dev is the port's
// index in urdma.json.
func (p *Pairs) Take(a *Account, dev int, name string, most int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most > 0 && p.count >= most {
		return fmt.Errorf("control: ports[%d].max_qp is %d, and %s has as many queue pairs: %w", dev, most, name,
			syscall.ENOMEM)
	}
	if share := a.of.Current().shareOf(uint64(most)); most > 0 && !a.Owner.Admin && uint64(p.of[a.Owner.UID]) >= share {
		return fmt.Errorf("control: limits.user_share leaves user %d %d of %s's %d queue pairs, and it has as many: %w",
			a.Owner.UID, share, name, most, syscall.ENOMEM)
	}
	p.add(a.Owner.UID, 1)
	return nil
}

// Len returns the number of queue pairs.
func (p *Pairs) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Give counts one queue pair less of a user.
func (p *Pairs) Give(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(uid, -1)
}

// Pass moves the count of a queue pair from one user to another.
func (p *Pairs) Pass(from, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(from, -1)
	p.add(to, 1)
}

func (p *Pairs) add(uid, by int) {
	p.count += by
	if p.of == nil {
		p.of = map[int]int{}
	}
	if p.of[uid] += by; p.of[uid] == 0 {
		delete(p.of, uid)
	}
}
