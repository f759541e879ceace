// Package account counts the resources that clients hold, and knows the limits per client, per
// user and in total. It knows the owner of a client, but not the counted objects.
package account

import (
	"fmt"
	"sync"
	"sync/atomic"

	"urdma/ancillary"
)

// Resource is a kind of thing that clients hold and that is counted per client, per user and in
// total.
type Resource int

// The counted resources.
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
	Descriptors // of urdmad's process, open as long as the object exists
	Fallbacks   // clients that use the fallback path; each has a thread
	Flows
	Clients
	resources
)

// Amounts says how much of each resource an object takes.
type Amounts [resources]uint64

// ledger counts held resources. Any goroutine may change it: connection requests take resources
// on the engine's thread, and mappings are given back there.
type ledger [resources]atomic.Uint64

// add adds n unless the sum would pass limit; 0 means no limit.
func (l *ledger) add(r Resource, n, limit uint64) bool {
	now := l[r].Add(n)
	if limit == 0 || now <= limit && now >= n {
		return true
	}
	l.sub(r, n)
	return false
}

func (l *ledger) sub(r Resource, n uint64) { l[r].Add(-n) }

// empty returns false as long as something outlives the connections, such as a thread that waits
// for a client's page.
func (l *ledger) empty() bool {
	for r := range l {
		if l[r].Load() != 0 {
			return false
		}
	}
	return true
}

// Accounts has the ledger of all clients together and one for each user. Its methods may be
// called from any goroutine.
type Accounts struct {
	Limits Limits // initial limits; SetLimits changes them
	Totals Totals

	changed atomic.Pointer[Limits] // set by SetLimits
	all     ledger
	blocked atomic.Int32 // number of calls that wait for clients
	mu      sync.Mutex
	users   map[int]*user
}

// Clients returns the number of clients.
func (a *Accounts) Clients() int { return int(a.all[Clients].Load()) }

// user is one user's ledger. It exists as long as the user has connections, or something that
// outlives them, as descriptors that can't be closed do.
type user struct {
	ledger
	connections  int
	blocked      atomic.Int32 // calls that wait for the user's clients
	closer       ancillary.Closer
	snapshotLock sync.Mutex
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
	if u.connections--; u.connections == 0 && u.empty() && u.closer.Idle() {
		delete(a.users, uid)
	}
}

// Account counts the resources of one client, and names its owner.
type Account struct {
	Owner Owner
	of    *Accounts
	user  *user
	used  ledger
}

// Join opens the account of a client whose Owner is known.
func (a *Account) Join(of *Accounts) {
	a.of, a.user = of, of.join(a.Owner.UID)
}

// Leave closes the account. Resources still held are given back one by one later.
func (a *Account) Leave() { a.of.leave(a.Owner.UID, a.user) }

// Closer returns the closer for descriptors of the client's user.
func (a *Account) Closer() *ancillary.Closer { return &a.user.closer }

// SnapshotLock allows one client of the user at a time to have a large copy made, because memory
// used while making it is in no ledger.
func (a *Account) SnapshotLock() *sync.Mutex { return &a.user.snapshotLock }

// Take counts resources that the client is about to get. On an error nothing was counted.
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

// takeOne counts one resource in the client's, the user's and the total ledger, in this order.
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
			return fmt.Errorf("control: limits.user_share leaves user %d %d %s, and it has as many: %w", a.Owner.UID, share,
				k.what, k.errno())
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

// MappingBudget counts mappings of a client's memory. It implements mem.Budget.
type MappingBudget struct{ *Account }

var oneMapping = Amounts{Mappings: 1}

// Take implements mem.Budget.
func (b MappingBudget) Take() error { return b.Account.Take(&oneMapping) }

// Give implements mem.Budget.
func (b MappingBudget) Give() { b.Account.Give(&oneMapping) }
