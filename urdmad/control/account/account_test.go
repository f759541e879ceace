package account

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func accountOf(of *Accounts, uid int, admin bool) *Account {
	a := new(Account)
	a.Owner.UID, a.Owner.Admin = uid, admin
	a.Join(of)
	return a
}

// TestUserShare: one user's processes together leave room for others, urdmad's
// own user excepted.
func TestUserShare(t *testing.T) {
	s := &Accounts{Limits: Limits{UserShare: 75, Clients: 8}, Totals: Totals{Mappings: 100}}
	a, b, other, own := accountOf(s, 1000, false), accountOf(s, 1000, false), accountOf(s, 1001, false),
		accountOf(s, 0, true)
	if err := errors.Join(a.Take(&Amounts{Mappings: 50}), b.Take(&Amounts{Mappings: 25})); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Take(&Amounts{EventChannels: 5, Regions: 100}), b.Take(&Amounts{Descriptors: 9})); err != nil {
		t.Errorf("what has no limit: %v", err)
	}
	err := b.Take(&Amounts{Mappings: 1})
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(),
		"limits.user_share leaves user 1000 75 mappings") {
		t.Errorf("beyond the share: %v", err)
	}
	if err := errors.Join(other.Take(&Amounts{Mappings: 10}), own.Take(&Amounts{Mappings: 15})); err != nil {
		t.Errorf("others: %v", err)
	}
	if err := own.Take(&Amounts{Mappings: 1}); !errors.Is(err, syscall.ENOMEM) ||
		!strings.Contains(err.Error(), "vm.max_map_count") {
		t.Errorf("beyond what there is: %v", err)
	}
	for range 6 {
		if err := a.Take(&Amounts{Clients: 1, Mappings: 1, Descriptors: 3}); err != nil && !errors.Is(err, syscall.ENOMEM) {
			t.Fatal(err)
		}
	}
	a.Give(&Amounts{Mappings: 50})
	if err := own.Take(&Amounts{Mappings: 50}); err != nil {
		t.Errorf("what was given back: %v", err)
	}
}

// TestTakeAllOrNothing: a refusal leaves every ledger as it was.
func TestTakeAllOrNothing(t *testing.T) {
	s := &Accounts{Limits: Limits{QueuePairs: 10}, Totals: Totals{QueueBytes: 100, Mappings: 1}}
	x := accountOf(s, 0, true)
	if err := x.Take(&Amounts{QueuePairs: 1, QueueBytes: 50, Mappings: 2}); err == nil {
		t.Fatal("two mappings of one")
	}
	if err := x.Take(&Amounts{QueuePairs: 1, QueueBytes: ^uint64(0)}); err == nil {
		t.Fatal("more bytes than there are")
	}
	for r := range resources {
		if n := []uint64{x.used[r].Load(), x.user.ledger[r].Load(), s.all[r].Load()}; n[0]+n[1]+n[2] != 0 {
			t.Errorf("resource %d: %v are held", r, n)
		}
	}
}

// TestPortShare: a port's queue pairs are shared among users as well.
func TestPortShare(t *testing.T) {
	const most = 4
	of, p := &Accounts{Limits: Limits{UserShare: 50}}, Pairs{}
	a, b := accountOf(of, 1000, false), accountOf(of, 1001, false)
	for range 2 {
		if err := p.Take(a, 0, "urdma0", most); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Take(a, 0, "urdma0", most); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("beyond the share: %v", err)
	}
	if err := p.Take(b, 0, "urdma0", most); err != nil {
		t.Errorf("another user: %v", err)
	}
	p.Give(1000)
	if err := p.Take(a, 0, "urdma0", most); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}

// TestMostPairs: what a client is told of a port's queue pairs is what it can have.
func TestMostPairs(t *testing.T) {
	for _, c := range []struct {
		port, client, share int
		admin               bool
		want                int
	}{
		{4096, 0, 75, false, 3072}, {4096, 0, 75, true, 4096}, {4096, 100, 75, false, 100},
		{100, 4096, 0, false, 100}, {0, 4096, 75, false, 4096}, {0, 0, 75, false, 0},
	} {
		all := &Accounts{Limits: Limits{QueuePairs: c.client, UserShare: c.share}}
		a := &Account{Owner: Owner{UID: 1000, Admin: c.admin}}
		a.Join(all)
		if got := a.Pairs(c.port); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		var pairs Pairs
		for range c.want {
			if err := pairs.Take(a, 0, "urdma0", c.port); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
	}
}
