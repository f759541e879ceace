package control

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/mem"
)

// errNotMem refuses a descriptor that is not the client's own /proc/self/mem:
// writing to another file would be done with urdmad's rights.
var errNotMem = errors.New("control: the descriptor is not /proc/self/mem of the client's process")

// memName is what the kernel calls it in any mount of procfs.
var memName = regexp.MustCompile(`(^|/)([0-9]+)(/task/[0-9]+)?/mem$`)

// checkedMem takes the client's /proc/self/mem from the message; nil without it
// or in place of another file: then only shared memory can be registered.
func (x *Session) checkedMem() *os.File {
	f := x.takeFile()
	if f == nil {
		return nil
	}
	err := fmt.Errorf("%w: looking at it takes too long", errNotMem)
	var found error
	if x.within(patience, func() { found = checkMem(f, x.owner.pid, x.owner.uid) }) {
		err = found
	}
	if err == nil {
		return f
	}
	x.s.Log.Warn("no fallback path for a client", "client", x.name, "error", err)
	x.user.closer.close(f)
	return nil
}

// checkMem holds that f is the mem file of the process that connected. Where
// both see the same procfs, the inode says so; else name, number in its own PID
// namespace, owner and mode must fit.
func checkMem(f *os.File, pid, uid int) error {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotMem, err)
	}
	parts := memName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("%w, but %q", errNotMem, printable(name))
	}
	var fs unix.Statfs_t
	var st, own unix.Stat_t
	if err := errors.Join(unix.Fstatfs(int(f.Fd()), &fs), unix.Fstat(int(f.Fd()), &st)); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("%w: %q is not in procfs", errNotMem, printable(name))
	}
	inner := innerPID(pid)
	if unix.Stat("/proc/self", &own) == nil && own.Dev == st.Dev {
		if unix.Stat(fmt.Sprintf("/proc/%d/mem", pid), &own) == nil && own.Ino == st.Ino {
			return nil
		}
		inner = strconv.Itoa(pid) // which hidepid= (proc(5)) may hide
	}
	if inner != "" && inner != parts[2] {
		return fmt.Errorf("%w: it is of process %s, and the client is %s", errNotMem, parts[2], inner)
	}
	if st.Mode&0o7777 != 0o600 || int(st.Uid) != uid && st.Uid != 0 {
		return fmt.Errorf("%w: mode %o, owner %d", errNotMem, st.Mode&0o7777, st.Uid)
	}
	return nil
}

// innerPID is a process's number in its own PID namespace, "" if it can't be
// seen from ours.
func innerPID(pid int) string {
	all := namespacePIDs(pid)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// namespacePIDs are a process's numbers from the PID namespace of our /proc to
// its own.
func namespacePIDs(pid int) []string {
	_, line, _ := strings.Cut(procText(pid, "status"), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}

// sealed reports a memfd that its owner can't shrink, the only kind of file
// that ADD_FILE takes.
func sealed(f *os.File) bool {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_SHRINK != 0
}

// startFallback makes sure that the fallback path works. Its thread may wait on
// the client's pages for ever, so it counts until the last job has ended.
func (x *Session) startFallback() error {
	if x.fallback {
		return nil
	}
	if err := x.take(&oneFallback); err != nil {
		return err
	}
	if err := x.space.Fallback(); err != nil {
		x.give(&oneFallback)
		return fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
	}
	x.fallback = true
	return nil
}

var oneFallback = amounts{fallbacks: 1}

// endFallback is called before the space is closed.
func (x *Session) endFallback() {
	if x.fallback {
		x.fallback = false
		x.space.Submit(mem.Job{Write: true, Done: func(error) { x.give(&oneFallback) }})
	}
}
