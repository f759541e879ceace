package process

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotMem refuses a descriptor that is not the client's own /proc/self/mem:
// writing to another file would be done with urdmad's rights.
var ErrNotMem = errors.New("control: the descriptor is not /proc/self/mem of the client's process")

// memName is what the kernel calls it in any mount of procfs.
var memName = regexp.MustCompile(`(^|/)([0-9]+)(/task/[0-9]+)?/mem$`)

// CheckMem holds that f is the mem file of the process that connected. Where
// both see the same procfs, the inode says so; else name, number in its own PID
// namespace, owner and mode must fit.
func CheckMem(f *os.File, pid, uid int) error {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotMem, err)
	}
	parts := memName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("%w, but %q", ErrNotMem, name)
	}
	var fs unix.Statfs_t
	var st, own unix.Stat_t
	if err := errors.Join(unix.Fstatfs(int(f.Fd()), &fs), unix.Fstat(int(f.Fd()), &st)); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("%w: %q is not in procfs", ErrNotMem, name)
	}
	inner := innerPID(pid)
	if unix.Stat("/proc/self", &own) == nil && own.Dev == st.Dev {
		if unix.Stat(fmt.Sprintf("/proc/%d/mem", pid), &own) == nil && own.Ino == st.Ino {
			return nil
		}
		inner = strconv.Itoa(pid) // which hidepid= (proc(5)) may hide
	}
	if inner != "" && inner != parts[2] {
		return fmt.Errorf("%w: it is of process %s, and the client is %s", ErrNotMem, parts[2], inner)
	}
	if st.Mode&0o7777 != 0o600 || int(st.Uid) != uid && st.Uid != 0 {
		return fmt.Errorf("%w: mode %o, owner %d", ErrNotMem, st.Mode&0o7777, st.Uid)
	}
	return nil
}
