package verbs_test

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs"
)

// TestOnDemand: a peer finds what is mapped at each access, with the rights that it has then.
func TestOnDemand(t *testing.T) {
	const size, rights = 16 * 4096, verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	c := startDaemon(t).open()
	b := must(unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	defer unix.Munmap(b) //nolint:errcheck // the test is over
	m, err := newEnd(t, c, verbs.QPOptions{}).PD().RegisterMemory(b, rights|verbs.OnDemand)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip(err)
	}
	ok(t, err)
	if m.Shared() {
		t.Error("urdmad maps it")
	}
	ok(t, m.Close())
	access := func(op verbs.Opcode, want verbs.Status) {
		t.Helper()
		from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
		join(t, from, to)
		m := must(to.PD().RegisterMemory(b, rights|verbs.OnDemand))(t)
		ok(t, from.PostSend(&verbs.SendWR{Op: op, Flags: verbs.Signaled, SGE: []verbs.SGE{from.memory.SGE(0, 8)},
			Remote: m.Remote(size - 8)}))
		from.next(t, want)
		ok(t, m.Close())
	}
	access(verbs.OpRead, verbs.StatusRemAccessErr)
	ok(t, unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE))
	b[size-1] = 9
	access(verbs.OpRead, verbs.StatusSuccess)
	access(verbs.OpWrite, verbs.StatusSuccess)
	if b[size-1] == 9 {
		t.Error("nothing was written")
	}
	ok(t, unix.Mprotect(b, unix.PROT_READ))
	access(verbs.OpRead, verbs.StatusSuccess)
	access(verbs.OpWrite, verbs.StatusRemAccessErr)
}

// TestOnDemandRights: ChangeAccess changes to on-demand paging and back; memory of AllocMemory has none.
func TestOnDemandRights(t *testing.T) {
	c := startDaemon(t).open()
	pd := newEnd(t, c, verbs.QPOptions{}).PD()
	m := must(pd.RegisterMemory(make([]byte, 100), verbs.LocalWrite))(t)
	key := m.RKey()
	err := m.ChangeAccess(verbs.LocalWrite | verbs.OnDemand)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip(err)
	}
	ok(t, err)
	ok(t, m.ChangeAccess(verbs.LocalWrite))
	if m.RKey() != key {
		t.Error("the key has changed")
	}
	ok(t, m.Close())
	if _, err := pd.AllocMemory(100, verbs.LocalWrite|verbs.OnDemand); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("AllocMemory: %v", err)
	}
}
