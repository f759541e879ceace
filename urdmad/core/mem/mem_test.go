package mem

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// memfd makes a file of n bytes with the given seals.
func memfd(t *testing.T, n int64, seals int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, n); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "test")
}

func space(t *testing.T, bytes int64) *Space {
	t.Helper()
	self, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSpace(self)
	t.Cleanup(s.Close)
	if err := s.AddFile(1, memfd(t, bytes, unix.F_SEAL_SHRINK)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlySealedMemfds(t *testing.T) {
	s := NewSpace(nil)
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*os.File{"unsealed": memfd(t, 4096, 0),
		"sealed against growing": memfd(t, 4096, unix.F_SEAL_GROW), "/dev/null": null} {
		if err := s.AddFile(1, f); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.Stat(); err == nil {
			t.Errorf("%s: refused and still open", name)
		}
	}
	if err := s.AddFile(1, memfd(t, 4096, unix.F_SEAL_SHRINK|unix.F_SEAL_WRITE)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Map(1, 0, 4096); err == nil {
		t.Error("a file that cannot be written was mapped")
	}
	if err := s.Fallback(); !errors.Is(err, ErrNoSelfMem) {
		t.Errorf("no /proc/self/mem: %v", err)
	}
}

func TestMapRanges(t *testing.T) {
	const size = 200 << 20
	s := space(t, size)
	for _, c := range []struct {
		file      uint32
		offset, n uint64
		want      error
	}{
		{1, 0, size, nil}, {1, size - 1, 1, nil}, {1, size, 1, ErrRange}, {1, 1, size, ErrRange},
		{1, 0, ^uint64(0), ErrRange},
		{1, ^uint64(0), 1, ErrRange}, {1, ^uint64(0) - 10, 20, ErrRange}, {2, 0, 1, ErrNoFile},
		{1, 1 << 63, 1 << 63, ErrRange},
	} {
		m, err := s.Map(c.file, c.offset, c.n)
		if !errors.Is(err, c.want) {
			t.Errorf("file %d, %d bytes at %d: %v, expected %v", c.file, c.n, c.offset, err, c.want)
		}
		if err == nil && uint64(len(m.Bytes)) != c.n {
			t.Errorf("%d bytes at %d: got %d", c.n, c.offset, len(m.Bytes))
		}
		s.Unmap(m)
	}
	if n := s.inUse(); n != 0 {
		t.Errorf("%d views are in use", n)
	}
}

// TestWindowsAreShared: neighbouring regions share a mapping. It is unmapped with the last region, but not before
// work in progress has released it.
func TestWindowsAreShared(t *testing.T) {
	s := space(t, 128<<20)
	table := NewTable(rand.NewPCG(1, 1))
	var regions []*Region
	for i := range uint64(100) {
		m, err := s.Map(1, i<<14, 1<<14)
		if err != nil {
			t.Fatal(err)
		}
		r := NewRegion(s, 1, 0, i<<14, 1<<14, 0, m)
		if !table.Insert(r) {
			t.Fatal("no STag")
		}
		regions = append(regions, r)
	}
	if len(s.views) != 1 {
		t.Fatalf("%d views for neighbours", len(s.views))
	}
	at := uintptr(unsafe.Pointer(&regions[5].Bytes(5<<14, 1)[0]))
	if !s.Contains(at) || s.Contains(at+1<<30) || s.Contains(0) {
		t.Error("Contains doesn't know the view")
	}
	last := regions[7]
	last.Hold()
	for _, r := range regions {
		table.Remove(r)
		if table.Lookup(r.STag) != nil {
			t.Error("a removed region is found")
		}
	}
	if len(s.views) != 1 || !last.Dead() || last.Bytes(7<<14, 4) == nil {
		t.Fatal("a region that is held lost its pages")
	}
	last.Bytes(7<<14, 4)[0] = 1 // would fault if it had been unmapped
	last.Release()
	if s.inUse() != 0 || table.Len() != 0 {
		t.Errorf("%d views and %d regions are left", s.inUse(), table.Len())
	}
	if s.Close(); len(s.views) != 0 || s.Contains(at) {
		t.Errorf("%d views are left when the client has gone", len(s.views))
	}
}

func TestChecks(t *testing.T) {
	const rw = LocalWrite | RemoteWrite
	r := NewRegion(nil, 5, rw, 1000, 100, 0, Mapping{})
	top := NewRegion(nil, 5, rw, ^uint64(0)-99, 99, 0, Mapping{}) // up to the last address but one
	for _, c := range []struct {
		name  string
		r     *Region
		pd    uint64
		va, n uint64
		want  uint32
		found Violation
	}{
		{"all", r, 5, 1000, 100, RemoteWrite, Allowed},
		{"last byte", r, 5, 1099, 1, RemoteWrite, Allowed},
		{"none at the end", r, 5, 1100, 0, RemoteWrite, Allowed},
		{"one too many", r, 5, 1000, 101, RemoteWrite, OutOfBounds},
		{"before", r, 5, 999, 1, RemoteWrite, OutOfBounds},
		{"behind", r, 5, 1100, 1, RemoteWrite, OutOfBounds},
		{"wraps", r, 5, ^uint64(0), 2, RemoteWrite, Wrap},
		{"wraps into it", r, 5, ^uint64(0) - 10, 1200, RemoteWrite, Wrap},
		{"other domain", r, 6, 1000, 1, RemoteWrite, OtherDomain},
		{"no right", r, 5, 1000, 1, RemoteRead, NoRight},
		{"no region", nil, 5, 1000, 1, RemoteWrite, NoRegion},
		{"top", top, 5, ^uint64(0) - 99, 99, RemoteWrite, Allowed},
		{"past the top", top, 5, ^uint64(0) - 99, 100, RemoteWrite, Wrap},
	} {
		if got := c.r.CheckRemote(User{PD: c.pd}, c.va, c.n, c.want); got != c.found {
			t.Errorf("%s: violation %d, expected %d", c.name, got, c.found)
		}
		if got := c.r.CheckLocal(c.pd, c.va, c.n, c.want); got != (c.found == Allowed) {
			t.Errorf("%s, local: %v", c.name, got)
		}
	}
}

// TestContainsIsSafe compares Contains with arithmetic that cannot overflow.
func TestContainsIsSafe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	edge := func() uint64 {
		v := []uint64{0, 1, 1 << 12, 1 << 63, ^uint64(0), rng.Uint64()}[rng.IntN(6)]
		return v + uint64(rng.IntN(5)) - 2
	}
	for range 200000 {
		base, length, va, n := edge(), edge(), edge(), edge()
		if base+length < base {
			continue // registration refuses it
		}
		want := va >= base && va-base <= length && n <= length-(va-base)
		if got := NewRegion(nil, 1, 0, base, length, 0, Mapping{}).Contains(va, n); got != want {
			t.Fatalf("%d bytes at %#x in %d at %#x: %v", n, va, length, base, got)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable(rand.NewPCG(3, 4))
	live := map[STag]*Region{}
	var stale []STag
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		if rng.IntN(3) > 0 {
			r := NewRegion(nil, 1, 0, 0, 1, 0, Mapping{})
			if !table.Insert(r) {
				t.Fatal("no STag left")
			}
			if r.STag < 256 || live[r.STag] != nil {
				t.Fatalf("STag %#x", r.STag)
			}
			live[r.STag] = r
			continue
		}
		for s, r := range live {
			table.Remove(r)
			delete(live, s)
			stale = append(stale, s)
			break
		}
	}
	if table.Len() != len(live) {
		t.Errorf("%d regions, expected %d", table.Len(), len(live))
	}
	for s, r := range live {
		if table.Lookup(s) != r || table.Lookup(s^1) == r {
			t.Fatalf("Lookup of %#x", s)
		}
	}
	for _, s := range stale {
		if table.Lookup(s) != live[s] {
			t.Fatalf("stale STag %#x finds something", s)
		}
	}
	for _, s := range []STag{0, 255, ^STag(0), 1 << 31} {
		if live[s] == nil && table.Lookup(s) != nil {
			t.Errorf("STag %#x finds something", s)
		}
	}
}

// TestTableGrowsInSteps: an Insert moves few regions, whatever the size of the table, because the worker waits for
// it.
func TestTableGrowsInSteps(t *testing.T) {
	table := NewTable(rand.NewPCG(7, 8))
	known := map[*segment]bool{table.segments[0]: true}
	for n := range 1 << 15 {
		r := NewRegion(nil, 1, 0, 0, 1, 0, Mapping{})
		table.Insert(r)
		fresh := 0
		for _, g := range table.segments {
			if !known[g] {
				known[g] = true
				fresh++
			}
		}
		if used := table.segment(r.STag).used; fresh > 4 || used > segmentSlots/2 || table.Lookup(r.STag) != r {
			t.Fatalf("region %d: %d segments are new, its own has %d regions", n, fresh, used)
		}
	}
}

// TestSTagsAreHardToGuess: every bit of an STag is set about half of the time, also while there are few.
func TestSTagsAreHardToGuess(t *testing.T) {
	const n = 4000
	var set [32]int
	for seed := range uint64(n) {
		table := NewTable(rand.NewPCG(seed, 9))
		r := NewRegion(nil, 1, 0, 0, 1, 0, Mapping{})
		table.Insert(r)
		for bit := range set {
			set[bit] += int(r.STag >> bit & 1)
		}
	}
	for bit, got := range set {
		if got < n*45/100 || got > n*55/100 {
			t.Errorf("bit %d is set in %d of %d STags", bit, got, n)
		}
	}
}

func TestFallback(t *testing.T) {
	s := space(t, 4096)
	if err := s.Fallback(); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b) //nolint:errcheck // the test is over
	addr := uint64(uintptr(unsafe.Pointer(&b[0])))
	var mu sync.Mutex
	var order []int
	var failed []error
	submit := func(i int, j Job) {
		j.Done = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			order, failed = append(order, i), append(failed, err)
		}
		s.Submit(j)
	}
	got := make([]byte, 3)
	submit(0, Job{Write: true, Addr: addr + 100, Buf: []byte("abc")})
	submit(1, Job{Write: true, Addr: addr + 101, Buf: []byte("x")})
	submit(2, Job{Addr: addr + 100, Buf: got})
	submit(3, Job{Write: true, Addr: 4096, Buf: []byte("nobody")})
	submit(4, Job{Write: true, Addr: 1<<63 + 5, Buf: []byte("nowhere")})
	submit(5, Job{Write: true, Addr: addr + 200, Buf: []byte("later")})
	s.Drain()
	if string(got) != "axc" || !bytes.Equal(b[200:205], []byte("later")) {
		t.Errorf("read %q, wrote %q", got, b[200:205])
	}
	for i, n := range order {
		if n != i || (failed[i] != nil) != (i == 3 || i == 4) {
			t.Errorf("jobs ended %v with %v", order, failed)
			break
		}
	}
	s.Close()
	s.Close()
	if err := s.Fallback(); err == nil {
		t.Error("the fallback works after Close")
	}
}

func TestZeroAccessAllowsReading(t *testing.T) {
	r := NewRegion(nil, 1, 0, 0, 10, 0, Mapping{})
	if !r.CheckLocal(1, 0, 10, 0) || r.CheckLocal(1, 0, 10, abi.AccessLocalWrite) {
		t.Error("local rights")
	}
}

// Replace leaves no moment in which the STag names nothing. Work that still holds the old region finds it invalid.
func TestReplace(t *testing.T) {
	table := NewTable(rand.NewPCG(1, 2))
	s := NewSpace(nil)
	old := NewRegion(s, 1, 0, 0x1000, 0, 0x1000, Mapping{})
	other := NewRegion(s, 1, 0, 0x3000, 0, 0x3000, Mapping{})
	if !table.Insert(old) || !table.Insert(other) {
		t.Fatal("no room")
	}
	old.Hold()
	r := NewRegion(s, 2, 0, 0x2000, 0, 0x2000, Mapping{})
	table.Replace(old, r)
	if r.STag != old.STag || table.Lookup(r.STag) != r || table.Lookup(other.STag) != other || table.Len() != 2 {
		t.Errorf("STag %#x names %p, want %p; %d regions", r.STag, table.Lookup(r.STag), r, table.Len())
	}
	if !old.Dead() || r.Dead() {
		t.Errorf("old dead: %v, new dead: %v", old.Dead(), r.Dead())
	}
	old.Release()
	table.Remove(old) // its STag names another region now
	if table.Lookup(r.STag) != r {
		t.Error("removing the old region took the new one's STag")
	}
}
