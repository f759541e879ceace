package process

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotMem reports a descriptor that is not the client's own /proc/self/mem or /proc/self/maps. Access
// to another file would use urdmad's rights.
var ErrNotMem = errors.New("control: the descriptor is not the file of /proc/self that was asked for, of the client's process")

// fileName matches a file's name in any mount of procfs.
var fileName = regexp.MustCompile(`(^|/)([0-9]+)(/task/[0-9]+)?/(mem|maps)$`)

// Descriptor is a file, of whose kind nothing is known yet.
type Descriptor interface{ Fd() uintptr }

// CheckMem checks that f is the mem file of the process that has connected. If both processes see
// the same procfs, the inode decides. Otherwise name, process number in its own PID namespace,
// owner and mode must match.
func CheckMem(f Descriptor, pid, uid int) error { return check(f, "mem", 0o600, pid, uid) }

// CheckMaps is CheckMem for the process's maps file.
func CheckMaps(f Descriptor, pid, uid int) error { return check(f, "maps", 0o444, pid, uid) }

func check(f Descriptor, want string, mode uint32, pid, uid int) error {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotMem, err)
	}
	parts := fileName.FindStringSubmatch(name)
	if parts == nil || parts[4] != want {
		return fmt.Errorf("%w, but %q", ErrNotMem, name)
	}
	var fs unix.Statfs_t
	var st, own unix.Stat_t
	if err := errors.Join(unix.Fstatfs(int(f.Fd()), &fs), unix.Fstat(int(f.Fd()), &st)); err != nil ||
		fs.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("%w: %q is not in procfs", ErrNotMem, name)
	}
	inner := innerPID(pid)
	if unix.Stat("/proc/self", &own) == nil && own.Dev == st.Dev {
		if unix.Stat(fmt.Sprintf("/proc/%d/%s", pid, want), &own) == nil && own.Ino == st.Ino {
			return nil
		}
		inner = strconv.Itoa(pid) // which hidepid= (proc(5)) may hide
	}
	if inner != "" && inner != parts[2] {
		return fmt.Errorf("%w: it is of process %s, and the client is %s", ErrNotMem, parts[2], inner)
	}
	if st.Mode&0o7777 != mode || int(st.Uid) != uid && st.Uid != 0 {
		return fmt.Errorf("%w: mode %o, owner %d", ErrNotMem, st.Mode&0o7777, st.Uid)
	}
	return nil
}
