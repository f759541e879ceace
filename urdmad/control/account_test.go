package control

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func accountOf(s *Server, uid int, admin bool) *Session {
	x := new(Session)
	x.s = s
	x.owner.uid, x.owner.admin = uid, admin
	x.user = s.accounts.join(uid)
	return x
}

// TestUserShare: one user's processes together leave room for others, urdmad's
// own user excepted.
func TestUserShare(t *testing.T) {
	s := &Server{Limits: Limits{UserShare: 75, Clients: 8}, Totals: Totals{Mappings: 100}}
	a, b, other, own := accountOf(s, 1000, false), accountOf(s, 1000, false), accountOf(s, 1001, false), accountOf(s, 0, true)
	if err := errors.Join(a.take(&amounts{mappings: 50}), b.take(&amounts{mappings: 25})); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.take(&amounts{eventChannels: 5, regions: 100}), b.take(&amounts{descriptors: 9})); err != nil {
		t.Errorf("what has no limit: %v", err)
	}
	err := b.take(&amounts{mappings: 1})
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "limits.user_share leaves user 1000 75 mappings") {
		t.Errorf("beyond the share: %v", err)
	}
	if err := errors.Join(other.take(&amounts{mappings: 10}), own.take(&amounts{mappings: 15})); err != nil {
		t.Errorf("others: %v", err)
	}
	if err := own.take(&amounts{mappings: 1}); !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "vm.max_map_count") {
		t.Errorf("beyond what there is: %v", err)
	}
	for range 6 {
		if err := a.take(&clientAmounts); err != nil && !errors.Is(err, syscall.ENOMEM) {
			t.Fatal(err)
		}
	}
	a.give(&amounts{mappings: 50})
	if err := own.take(&amounts{mappings: 50}); err != nil {
		t.Errorf("what was given back: %v", err)
	}
}

// TestTakeAllOrNothing: a refusal leaves every ledger as it was.
func TestTakeAllOrNothing(t *testing.T) {
	s := &Server{Limits: Limits{QueuePairs: 10}, Totals: Totals{QueueBytes: 100, Mappings: 1}}
	x := accountOf(s, 0, true)
	if err := x.take(&amounts{queuePairs: 1, queueBytes: 50, mappings: 2}); err == nil {
		t.Fatal("two mappings of one")
	}
	if err := x.take(&amounts{queuePairs: 1, queueBytes: ^uint64(0)}); err == nil {
		t.Fatal("more bytes than there are")
	}
	for r := range resources {
		if n := []uint64{x.used[r].Load(), x.user.ledger[r].Load(), s.accounts.all[r].Load()}; n[0]+n[1]+n[2] != 0 {
			t.Errorf("resource %d: %v are held", r, n)
		}
	}
}

// TestPortShare: a port's queue pairs are shared among users as well.
func TestPortShare(t *testing.T) {
	s := &Server{Limits: Limits{UserShare: 50}, Devices: []Device{{Name: "urdma0", MaxQP: 4}}}
	a, b := accountOf(s, 1000, false), accountOf(s, 1001, false)
	for range 2 {
		if err := a.roomOnPort(0); err != nil {
			t.Fatal(err)
		}
		s.Devices[0].countPair(1000, 1)
	}
	if err := a.roomOnPort(0); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("beyond the share: %v", err)
	}
	if err := b.roomOnPort(0); err != nil {
		t.Errorf("another user: %v", err)
	}
	s.Devices[0].countPair(1000, -1)
	if err := a.roomOnPort(0); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}
