package control

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// resource is something that clients hold and that is counted: per client, per
// user and over all.
type resource int

const (
	contexts resource = iota
	domains
	files
	regions
	registeredBytes
	completionChannels
	completionQueues
	queuePairs
	eventChannels
	ids
	queueBytes  // shared memory of queues, and urdmad's copies of work requests
	mappings    // of urdmad's process
	descriptors // of urdmad's process, held as long as the object
	fallbacks   // clients that use the fallback path: a thread each
	clients
	resources
)

// amounts says how much of each resource an object takes.
type amounts [resources]uint64

// ledger counts what is held. Any goroutine may change it: connection requests
// take on the engine's thread, and mappings are given back there.
type ledger [resources]atomic.Uint64

// add counts n more unless that passes limit; 0 is no limit.
func (l *ledger) add(r resource, n, limit uint64) bool {
	now := l[r].Add(n)
	if limit == 0 || now <= limit && now >= n {
		return true
	}
	l.sub(r, n)
	return false
}

func (l *ledger) sub(r resource, n uint64) { l[r].Add(-n) }

// accounts are the ledgers of all clients together and of each user.
type accounts struct {
	all   ledger
	mu    sync.Mutex
	users map[int]*user
}

// user is one user's ledger, kept as long as the user has connections or
// something that outlived them.
type user struct {
	ledger
	connections int
	blocked     atomic.Int32 // calls that wait for the user's clients
	closer      closer
}

func (a *accounts) join(uid int) *user {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.users[uid]
	if u == nil {
		if a.users == nil {
			a.users = map[int]*user{}
		}
		u = &user{}
		a.users[uid] = u
	}
	u.connections++
	return u
}

func (a *accounts) leave(uid int, u *user) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.connections--; u.connections == 0 && u.empty() {
		delete(a.users, uid)
	}
}

// empty is false as long as something outlives the connections: a thread that
// waits for a client's page.
func (l *ledger) empty() bool {
	for r := range l {
		if l[r].Load() != 0 {
			return false
		}
	}
	return true
}

// take counts what the client is about to get, or refuses it and counts
// nothing.
func (x *Session) take(a *amounts) error {
	for r := range resources {
		if a[r] == 0 {
			continue
		}
		if err := x.takeOne(r, a[r]); err != nil {
			for q := range r {
				x.giveOne(q, a[q])
			}
			return err
		}
	}
	return nil
}

// takeOne goes from the narrowest ledger to the widest.
func (x *Session) takeOne(r resource, n uint64) error {
	k, l := &kinds[r], x.s.limits()
	var limit, total, share uint64
	if k.each != nil {
		limit = k.each(l)
	}
	if k.all != nil {
		total = k.all(x.s)
	}
	if share = total; !x.owner.admin {
		share = l.shareOf(total)
	}
	if !x.used.add(r, n, limit) {
		return k.overLimit(limit)
	}
	if !x.user.add(r, n, share) {
		x.used.sub(r, n)
		if share < total {
			return fmt.Errorf("control: limits.user_share leaves user %d %d %s, and it has as many: %w", x.owner.uid, share, k.what, k.errno())
		}
		return k.exhausted(total)
	}
	if !x.s.accounts.all.add(r, n, total) {
		x.used.sub(r, n)
		x.user.sub(r, n)
		return k.exhausted(total)
	}
	return nil
}

// give undoes take.
func (x *Session) give(a *amounts) {
	for r, n := range a {
		x.giveOne(resource(r), n)
	}
}

func (x *Session) giveOne(r resource, n uint64) {
	if n > 0 {
		x.used.sub(r, n)
		x.user.sub(r, n)
		x.s.accounts.all.sub(r, n)
	}
}

// clientAmounts is what a client takes before it has any object: doorbells are
// mapped; the connection, the kick socket and /proc/self/mem are open.
var clientAmounts = amounts{clients: 1, mappings: 1, descriptors: 3}

// mappingBudget is a mem.Budget.
type mappingBudget struct{ x *Session }

var oneMapping = amounts{mappings: 1}

func (b mappingBudget) Take() error { return b.x.take(&oneMapping) }
func (b mappingBudget) Give()       { b.x.give(&oneMapping) }
