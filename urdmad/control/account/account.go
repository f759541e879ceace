// Package account counts what clients hold, and says what they may have: per
// client, per user and over all. It knows whose a client is, and nothing of the
// objects that are counted.
package account

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Resource is something that clients hold and that is counted: per client, per
// user and over all.
type Resource int

// What is counted.
const (
	Contexts Resource = iota
	Domains
	Files
	Regions
	RegisteredBytes
	CompletionChannels
	CompletionQueues
	QueuePairs
	SharedQueues
	EventChannels
	IDs
	QueueBytes  // shared memory of queues, and urdmad's copies of work requests
	Mappings    // of urdmad's process
	Descriptors // of urdmad's process, held as long as the object
	Fallbacks   // clients that use the fallback path: a thread each
	Clients
	resources
)

// Amounts says how much of each resource an object takes.
type Amounts [resources]uint64

// ledger counts what is held. Any goroutine may change it: connection requests
// take on the engine's thread, and mappings are given back there.
type ledger [resources]atomic.Uint64

// add counts n more unless that passes limit; 0 is no limit.
func (l *ledger) add(r Resource, n, limit uint64) bool {
	now := l[r].Add(n)
	if limit == 0 || now <= limit && now >= n {
		return true
	}
	l.sub(r, n)
	return false
}

func (l *ledger) sub(r Resource, n uint64) { l[r].Add(-n) }

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

// Accounts are the ledgers of all clients together and of each user. Its
// methods may be called from any goroutine.
type Accounts struct {
	Limits Limits // at the start; SetLimits changes them
	Totals Totals

	changed atomic.Pointer[Limits] // by SetLimits
	all     ledger
	blocked atomic.Int32 // calls that wait for clients
	mu      sync.Mutex
	users   map[int]*user
}

// Clients is how many clients there are.
func (a *Accounts) Clients() int { return int(a.all[Clients].Load()) }

// user is one user's ledger, kept as long as the user has connections or
// something that outlived them.
type user struct {
	ledger
	connections int
	blocked     atomic.Int32 // calls that wait for the user's clients
	closer      Closer
	looks       sync.Mutex
}

func (a *Accounts) join(uid int) *user {
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

func (a *Accounts) leave(uid int, u *user) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.connections--; u.connections == 0 && u.empty() {
		delete(a.users, uid)
	}
}

// Account is what one client has taken, and in whose name.
type Account struct {
	Owner Owner
	of    *Accounts
	user  *user
	used  ledger
}

// Join begins the account of a client whose Owner is known.
func (a *Account) Join(of *Accounts) {
	a.of, a.user = of, of.join(a.Owner.UID)
}

// Leave ends it. What has been taken is still given back one by one.
func (a *Account) Leave() { a.of.leave(a.Owner.UID, a.user) }

// Closer closes descriptors of the client's user.
func (a *Account) Closer() *Closer { return &a.user.closer }

// Looks is held by the one client of the user that is given a copy of much: what that takes
// while it is made is in no ledger.
func (a *Account) Looks() *sync.Mutex { return &a.user.looks }

// Take counts what the client is about to get, or refuses it and counts
// nothing.
func (a *Account) Take(want *Amounts) error {
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
func (a *Account) takeOne(r Resource, n uint64) error {
	k, l := &kinds[r], a.of.Current()
	var limit, total, share uint64
	if k.each != nil {
		limit = k.each(l)
	}
	if k.all != nil {
		total = k.all(a.of)
	}
	if share = total; !a.Owner.Admin {
		share = l.shareOf(total)
	}
	if !a.used.add(r, n, limit) {
		return k.overLimit(limit)
	}
	if !a.user.add(r, n, share) {
		a.used.sub(r, n)
		if share < total {
			return fmt.Errorf("control: limits.user_share leaves user %d %d %s, and it has as many: %w", a.Owner.UID, share, k.what, k.errno())
		}
		return k.exhausted(total)
	}
	if !a.of.all.add(r, n, total) {
		a.used.sub(r, n)
		a.user.sub(r, n)
		return k.exhausted(total)
	}
	return nil
}

// Give undoes Take.
func (a *Account) Give(had *Amounts) {
	for r, n := range had {
		a.giveOne(Resource(r), n)
	}
}

func (a *Account) giveOne(r Resource, n uint64) {
	if n > 0 {
		a.used.sub(r, n)
		a.user.sub(r, n)
		a.of.all.sub(r, n)
	}
}

// MappingBudget counts mappings of a client's memory: a mem.Budget.
type MappingBudget struct{ *Account }

var oneMapping = Amounts{Mappings: 1}

// Take is mem.Budget's.
func (b MappingBudget) Take() error { return b.Account.Take(&oneMapping) }

// Give is mem.Budget's.
func (b MappingBudget) Give() { b.Account.Give(&oneMapping) }
