package verbs_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs"
)

const (
	dmabufBytes = 16 * 4096
	dmabufSkip  = 8200                     // where the region begins
	dmabufIOVA  = 77<<12 + dmabufSkip%4096 // its address for peers
)

// sealed returns a memfd that udmabuf accepts.
func sealed(t *testing.T) *os.File {
	f := os.NewFile(uintptr(must(unix.MemfdCreate("program's", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)), "memfd")
	t.Cleanup(func() { f.Close() })
	ok(t, f.Truncate(dmabufBytes))
	must(unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK))(t)
	return f
}

// TestDMABuf: peers write to memory that is registered by descriptor, and closed since.
func TestDMABuf(t *testing.T) {
	for name, file := range map[string]func(*testing.T) (buffer, memory *os.File){
		"memfd": func(t *testing.T) (*os.File, *os.File) { f := sealed(t); return duplicate(t, f), f },
		"udmabuf": func(t *testing.T) (*os.File, *os.File) {
			f := sealed(t)
			return udmabuf(t, f), f
		},
	} {
		t.Run(name, func(t *testing.T) {
			buffer, memory := file(t)
			c := startDaemon(t).open()
			from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
			join(t, from, to)
			const n = 4096
			m := must(to.PD().RegisterDMABuf(buffer, dmabufSkip, n, dmabufIOVA, verbs.LocalWrite|verbs.RemoteWrite))(t)
			ok(t, buffer.Close())
			if m.Bytes() != nil || !m.Shared() || m.Addr() != dmabufIOVA {
				t.Errorf("it has %d bytes here, shared %v, at %#x", len(m.Bytes()), m.Shared(), m.Addr())
			}
			fill(from.memory.Bytes(), 1)
			write := func(offset int, want verbs.Status) {
				t.Helper()
				ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled,
					SGE: []verbs.SGE{from.memory.SGE(0, 64)}, Remote: m.Remote(offset)}))
				from.next(t, want)
			}
			write(n-64, verbs.StatusSuccess)
			got := make([]byte, 64)
			must(memory.ReadAt(got, dmabufSkip+n-64))(t)
			if !bytes.Equal(got, from.memory.Bytes()[:64]) {
				t.Error("not written")
			}
			if err := m.ChangeAccess(verbs.LocalWrite); !errors.Is(err, syscall.EOPNOTSUPP) {
				t.Errorf("ChangeAccess: %v", err)
			}
			write(n-63, verbs.StatusRemAccessErr)
			ok(t, m.Close())
		})
	}
}

func duplicate(t *testing.T, f *os.File) *os.File {
	return os.NewFile(uintptr(must(unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0))(t)), f.Name())
}

// TestDMABufRefused: what is no such memory gives the errno of ibv_reg_dmabuf_mr.
func TestDMABufRefused(t *testing.T) {
	f := sealed(t)
	r, w, err := os.Pipe()
	ok(t, err)
	defer r.Close()
	defer w.Close()
	closed := duplicate(t, f)
	ok(t, closed.Close())
	disk := must(os.CreateTemp(".", "dmabuf"))(t)
	defer disk.Close()
	ok(t, errors.Join(os.Remove(disk.Name()), disk.Truncate(dmabufBytes)))
	pd := newEnd(t, startDaemon(t).open(), verbs.QPOptions{}).PD()
	for _, c := range []struct {
		file                 *os.File
		offset, length, iova uint64
		access               verbs.Access
		want                 error
	}{
		{f, 0, 0, 0, 0, syscall.EINVAL},
		{f, 4096, dmabufBytes, 0, 0, syscall.EINVAL},
		{f, 0, 4096, 8, 0, syscall.EINVAL},
		{f, 0, 4096, 0, verbs.RemoteWrite, syscall.EINVAL},
		{f, 0, 4096, 0, verbs.OnDemand, syscall.EINVAL},
		{r, 0, 4096, 0, 0, syscall.EINVAL},
		{closed, 0, 4096, 0, 0, syscall.EBADF},
		{disk, 0, 4096, 0, verbs.LocalWrite, syscall.EOPNOTSUPP},
	} {
		var fs unix.Statfs_t
		if c.file == disk && unix.Fstatfs(int(disk.Fd()), &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
			continue
		}
		if _, err := pd.RegisterDMABuf(c.file, c.offset, c.length, c.iova, c.access); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
