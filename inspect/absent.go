package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrStale comes with ErrNotRunning if a urdmad has left files behind.
var ErrStale = errors.New("a urdmad that was killed, or whose socket was removed, has left files")

// notConnected says why connecting to a control socket failed.
func notConnected(socket string, err error) error {
	fi, none := os.Stat(socket)
	switch {
	case none == nil && fi.Mode().Type() != fs.ModeSocket: // connect(2) says ECONNREFUSED for it
		return fmt.Errorf("%s is no socket; name urdmad's by --socket or URDMA_SOCKET", socket)
	case errors.Is(err, fs.ErrPermission):
		return notAllowed(socket, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s; start it (systemctl --user start urdmad, or urdmad) or name its socket by --socket "+
			"or URDMA_SOCKET; "+
			"%w, the socket", ErrNotRunning, socket, ErrStale)
	case errors.Is(err, fs.ErrNotExist):
		err := fmt.Errorf("%w at %s; start it (systemctl --user start urdmad, or urdmad) or name its socket by --socket "+
			"or URDMA_SOCKET", ErrNotRunning, socket)
		if tree := strings.TrimSuffix(socket, ".sock") + ".sysfs"; exists(tree) {
			err = fmt.Errorf("%w; %w, %s", err, ErrStale, tree)
		}
		return err
	}
	return fmt.Errorf("connecting to urdmad: %w", err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// notAllowed names the socket or the directory that the caller has no permission for.
func notAllowed(socket string, err error) error {
	if fi, bad := os.Stat(socket); bad == nil {
		return fmt.Errorf("%s belongs to %s and has mode %04o; %s: %w", socket, owner(fi), fi.Mode().Perm(), admitted(fi),
			err)
	}
	for dir := filepath.Dir(socket); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if fi, bad := os.Stat(dir); bad == nil {
			return fmt.Errorf("the directory %s belongs to %s, and its mode %04o keeps you out of %s: %w", dir, owner(fi),
				fi.Mode().Perm(), socket, err)
		}
	}
	return fmt.Errorf("%s: %w", socket, err)
}

// admitted says how another user gets access.
func admitted(fi fs.FileInfo) string {
	if fi.Mode().Perm()&0o060 != 0o060 {
		return "socket_group in its urdma.json lets others in"
	}
	gid := strconv.Itoa(int(fi.Sys().(*syscall.Stat_t).Gid))
	if g, err := user.LookupGroupId(gid); err == nil {
		gid = g.Name
	}
	return "members of group " + gid + " may use it: usermod --append --groups " + gid + " USER, as root, then log in anew"
}

func owner(fi fs.FileInfo) string {
	uid := strconv.Itoa(int(fi.Sys().(*syscall.Stat_t).Uid))
	if u, err := user.LookupId(uid); err == nil {
		return "user " + u.Username
	}
	return "user " + uid
}

// peer is the process that listens on the socket, or that opened it for urdmad; 0 if it is not visible from here.
func (s *Source) peer() (pid int) {
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // fails only on a closed connection
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid
}

// stopped reports whether a process is stopped by a signal or a debugger (proc_pid_stat(5)).
func stopped(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // fails if the process is not visible or has ended
	i := strings.LastIndex(string(text), ") ")                // end of the command, which may contain anything
	return i >= 0 && strings.HasPrefix(strings.ToUpper(string(text[i+2:])), "T")
}
