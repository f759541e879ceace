package verbs_test

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs"
)

// TestSharedMemory: if the program maps a file on tmpfs shared, urdmad maps it, too; written data is there
// when the writer's completion is polled.
func TestSharedMemory(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	const page, size = 4096, 16 * 4096
	memfd := func() *os.File {
		f := os.NewFile(uintptr(must(unix.MemfdCreate("program's", unix.MFD_CLOEXEC))(t)), "memfd")
		t.Cleanup(func() { f.Close() })
		return f
	}
	shm := func() *os.File {
		f := must(os.CreateTemp("/dev/shm", "urdma"))(t)
		t.Cleanup(func() { f.Close(); os.Remove(f.Name()) })
		return f
	}
	for name, test := range map[string]struct {
		make  func() *os.File
		close bool
	}{
		"memfd":             {memfd, false},
		"memfd, closed":     {memfd, true}, // shared if the kernel lets it be opened
		"/dev/shm":          {shm, false},
		"/dev/shm, by path": {shm, true},
	} {
		f := test.make()
		ok(t, f.Truncate(size))
		all := must(unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))(t)
		if test.close {
			f.Close()
		}
		b := all[page : size-100]
		m := must(to.PD().RegisterMemory(b, verbs.LocalWrite|verbs.RemoteWrite))(t)
		if name != "memfd, closed" && !m.Shared() {
			t.Errorf("%s: urdmad does not map it", name)
		}
		src := must(from.PD().AllocMemory(len(b), verbs.LocalWrite))(t)
		for round := range 100 {
			fill(src.Bytes(), round)
			ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{src.SGE(0, len(b))},
				Remote: m.Remote(0)}))
			from.next(t, verbs.StatusSuccess)
			if !bytes.Equal(b, src.Bytes()) {
				t.Fatalf("%s: round %d: completed and not there", name, round)
			}
		}
		ok(t, m.ChangeAccess(verbs.LocalWrite))
		ok(t, m.Close())
		ok(t, src.Close())
		ok(t, unix.Munmap(all))
	}
}
