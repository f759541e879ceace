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

// account is what one client has taken, and in whose name.
type account struct {
	s     *Server
	owner owner
	user  *user
	used  ledger
}

// take counts what the client is about to get, or refuses it and counts
// nothing.
func (a *account) take(want *amounts) error {
	for r := range resources {
		if want[r] == 0 {
			continue
		}
		if err := a.takeOne(r, want[r]); err != nil {
			for q := range r {
				a.giveOne(q, want[q])
			}
			return err
		}
	}
	return nil
}

// takeOne goes from the narrowest ledger to the widest.
func (a *account) takeOne(r resource, n uint64) error {
	k, l := &kinds[r], a.s.limits()
	var limit, total, share uint64
	if k.each != nil {
		limit = k.each(l)
	}
	if k.all != nil {
		total = k.all(a.s)
	}
	if share = total; !a.owner.admin {
		share = l.shareOf(total)
	}
	if !a.used.add(r, n, limit) {
		return k.overLimit(limit)
	}
	if !a.user.add(r, n, share) {
		a.used.sub(r, n)
		if share < total {
			return fmt.Errorf("control: limits.user_share leaves user %d %d %s, and it has as many: %w", a.owner.uid, share, k.what, k.errno())
		}
		return k.exhausted(total)
	}
	if !a.s.accounts.all.add(r, n, total) {
		a.used.sub(r, n)
		a.user.sub(r, n)
		return k.exhausted(total)
	}
	return nil
}

// give undoes take.
func (a *account) give(had *amounts) {
	for r, n := range had {
		a.giveOne(resource(r), n)
	}
}

func (a *account) giveOne(r resource, n uint64) {
	if n > 0 {
		a.used.sub(r, n)
		a.user.sub(r, n)
		a.s.accounts.all.sub(r, n)
	}
}

// clientAmounts is what a client takes before it has any object: doorbells are
// mapped; the connection, the kick socket and /proc/self/mem are open.
var clientAmounts = amounts{clients: 1, mappings: 1, descriptors: 3}

// mappingBudget is a mem.Budget.
type mappingBudget struct{ *account }

var oneMapping = amounts{mappings: 1}

func (b mappingBudget) Take() error { return b.take(&oneMapping) }
func (b mappingBudget) Give()       { b.give(&oneMapping) }
