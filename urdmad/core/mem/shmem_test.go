package mem

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func openFile(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestShmemAlone: urdmad maps only files of a program whose pages are available without waiting, and which the
// program itself may write.
func TestShmemAlone(t *testing.T) {
	shm := filepath.Join("/dev/shm", filepath.Base(t.TempDir())+t.Name())
	good := openFile(t, shm, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	t.Cleanup(func() { os.Remove(shm) })
	plain := filepath.Join("testdata", t.Name()) // on a disk, or the checkout's file system
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll("testdata") })
	for name, c := range map[string]struct {
		file *os.File
		good bool
	}{
		"memfd": {memfd(t, 4096, 0), true}, "sealed memfd": {memfd(t, 4096, unix.F_SEAL_SHRINK), true},
		"/dev/shm":             {good, true},
		"/dev/shm, read only":  {openFile(t, shm, unix.O_RDONLY), false},
		"/dev/shm, write only": {openFile(t, shm, unix.O_WRONLY), false},
		"/dev/shm, O_PATH":     {openFile(t, shm, unix.O_PATH), false},
		"a folder of it":       {openFile(t, "/dev/shm", unix.O_RDONLY|unix.O_DIRECTORY), false},
		"another file":         {openFile(t, plain, unix.O_RDWR|unix.O_CREAT), onTmpfs(t, "testdata")},
		"/dev/zero":            {openFile(t, "/dev/zero", unix.O_RDWR), false},
		"/proc/self/mem":       {openFile(t, "/proc/self/mem", unix.O_RDWR), false},
	} {
		if err := CheckShmem(c.file); (err == nil) != c.good {
			t.Errorf("%s: %v, expected it taken: %v", name, err, c.good)
		}
	}
}

func onTmpfs(t *testing.T, path string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		t.Fatal(err)
	}
	return fs.Type == unix.TMPFS_MAGIC
}

func idOf(t *testing.T, f *os.File) FileID {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return FileID{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}
}

// TestMapFile: regions of one file share a mapping, whichever descriptors they come with. After the last region
// nothing of the file is kept.
func TestMapFile(t *testing.T) {
	s := NewSpace(nil)
	t.Cleanup(s.Close)
	f := memfd(t, 1<<20, 0)
	again := openFile(t, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.O_RDWR)
	other := memfd(t, 1<<20, 0)
	a, err := s.MapFile(f, idOf(t, f), 4096, 100)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.MapFile(again, idOf(t, f), 4096, 100)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.MapFile(other, idOf(t, other), 4096, 100)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	a.Bytes[0] = 1
	if b.Bytes[0] != 1 || c.Bytes[0] != 0 || len(s.views) != 2 {
		t.Errorf("%d views of two files; bytes %d %d %d", len(s.views), a.Bytes[0], b.Bytes[0], c.Bytes[0])
	}
	for name, r := range map[string][2]uint64{"behind": {1 << 20, 1}, "over the end": {1<<20 - 1, 2}, "none": {0, 0},
		"wraps": {^uint64(0), 2}} {
		if _, err := s.MapFile(again, idOf(t, again), r[0], r[1]); !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.MapFile(again, idOf(t, other), 0, 1); !errors.Is(err, ErrOtherFile) {
		t.Errorf("another file than the program means: %v", err)
	}
	if sealed := memfd(t, 4096, unix.F_SEAL_WRITE); func() bool {
		_,
			err := s.MapFile(sealed, idOf(t, sealed), 0, 4096)
		return err == nil
	}() {
		t.Error("a file that is sealed against writing was mapped")
	}
	s.Unmap(a)
	s.Unmap(b)
	s.Unmap(c)
	if len(s.views) != 0 {
		t.Errorf("%d views are kept of files that nobody uses", len(s.views))
	}
}

// TestExporter: the exporter of a dma-buf is the one that the kernel names, whatever the buffer's name.
func TestExporter(t *testing.T) {
	const head = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t7\n"
	for info, want := range map[string]string{
		head: "",
		head + "size:\t8192\ncount:\t1\nexp_name:\tudmabuf\n":                            "udmabuf",
		head + "size:\t8192\ncount:\t1\nexp_name:\ti915\nname:\tx\nexp_name:\tudmabuf\n": "i915",
		head + "size:\t8192\ncount:\t1\nexp_name:\tudmabuf x\n":                          "udmabuf x",
	} {
		if got, ok := exporterIn(info); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", info, got, ok)
		}
	}
}
