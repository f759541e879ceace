package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// places is the environment that determines the socket's path. Tests replace it.
type places struct {
	env     func(string) string
	run     string // "/run"
	tmp     string // "/tmp"
	uid     int
	isDir   func(string) bool
	exists  func(string) bool
	canMake func(dir string) bool
	// trusted reports whether no other user could have put the socket there.
	trusted func(socket string) bool
}

func systemPlaces() places {
	return places{
		env: os.Getenv, run: "/run", tmp: "/tmp", uid: os.Getuid(),
		isDir:   func(p string) bool { fi, err := os.Stat(p); return err == nil && fi.IsDir() },
		exists:  func(p string) bool { _, err := os.Stat(p); return err == nil },
		canMake: canMake,
		trusted: func(socket string) bool { return CheckSocketDir(socket) == nil },
	}
}

// canMake reports whether a file can be created in dir. dir itself may have to be created first.
func canMake(dir string) bool {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
	}
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil
}

// defaultSocket is the control socket that urdmad creates if nothing else is configured: $URDMA_SOCKET, or
// urdma/urdmad.sock in $XDG_RUNTIME_DIR, or /run/urdma/urdmad.sock if it exists or can be created, or
// /tmp/urdma-UID/urdmad.sock. origin says which of them.
func defaultSocket(p places) (path, origin string) {
	if s := p.env("URDMA_SOCKET"); s != "" {
		if absolute, err := filepath.Abs(s); err == nil {
			s = absolute
		}
		return s, "$URDMA_SOCKET"
	}
	if dir := p.env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && p.isDir(dir) {
		return filepath.Join(dir, "urdma", "urdmad.sock"), "$XDG_RUNTIME_DIR"
	}
	if system := p.system(); p.exists(system) || p.canMake(filepath.Dir(system)) {
		return system, "default"
	}
	return p.private(), "default"
}

func (p places) system() string { return filepath.Join(p.run, "urdma", "urdmad.sock") }

// login is the user's runtime directory that logind makes, also for processes without $XDG_RUNTIME_DIR (cron, su,
// ssh without a terminal).
func (p places) login() string {
	return filepath.Join(p.run, "user", strconv.Itoa(p.uid), "urdma", "urdmad.sock")
}

func (p places) private() string {
	return filepath.Join(p.tmp, "urdma-"+strconv.Itoa(p.uid), "urdmad.sock")
}

// FindSocket is the path at which a program looks for a running urdmad. It is $URDMA_SOCKET if set. Otherwise it is
// the first default place with a socket, so that a user without a urdmad of their own finds the system's. It skips
// a place that another user could have prepared. If no place has a socket, it is the path that urdmad would create.
func FindSocket() string { return findSocket(systemPlaces()) }

func findSocket(p places) string {
	fallback, _ := defaultSocket(p)
	if p.env("URDMA_SOCKET") != "" {
		return fallback
	}
	for _, path := range p.looked() {
		if p.exists(path) && p.trusted(path) {
			return path
		}
	}
	return fallback
}

// looked lists the places that FindSocket checks, in order.
func (p places) looked() (list []string) {
	fallback, _ := defaultSocket(p)
	if p.env("URDMA_SOCKET") != "" {
		return []string{fallback}
	}
	for _, path := range []string{fallback, p.login(), p.system(), p.private()} {
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// SocketPlaces lists the places that FindSocket checks, in order.
func SocketPlaces() []string { return systemPlaces().looked() }

// MakeSocketDir creates the directory of the control socket, with mode 0700, or 0755 if a group is to reach the
// socket through it. An existing directory keeps its mode.
//
// A directory inside a world-writable one such as /tmp must belong to the caller, and nobody else may write it;
// otherwise another user could put a socket of their own in its place. Only members of group gid may write it, for
// example in a volume that containers share. gid is NoGroup if the socket has no group.
func MakeSocketDir(socket string, gid int) error {
	dir := filepath.Dir(socket)
	mode := fs.FileMode(0o700)
	if gid != NoGroup {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("directory of the socket %s: %w", socket, err)
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		return os.Chmod(dir, mode) // regardless of the umask
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("directory of the socket %s: %w", socket, err)
	}
	return checkSocketDir(socket, gid)
}

// NoGroup means that socket_group is not set.
const NoGroup = -1

// CheckSocketDir refuses a socket in a directory that another user could have prepared: inside a sticky directory
// it must belong to the caller or root, must not be a symbolic link, and must not be writable by others.
func CheckSocketDir(socket string) error { return checkSocketDir(socket, NoGroup) }

func checkSocketDir(socket string, gid int) error {
	dir := filepath.Dir(socket)
	parent, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("directory of the socket %s: %w", socket, err)
	}
	if parent.Mode()&fs.ModeSticky == 0 {
		return nil
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("directory of the socket %s: %w", socket, err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("directory of the socket %s: %s is no directory; remove it", socket, dir)
	}
	st := fi.Sys().(*syscall.Stat_t)
	owner := int(st.Uid)
	if owner != os.Getuid() && owner != 0 {
		return fmt.Errorf("directory of the socket %s: %s belongs to uid %d, expected %d or 0; choose another by "+
			"URDMA_SOCKET", socket, dir, owner, os.Getuid())
	}
	others := fs.FileMode(0o022)
	if gid != NoGroup && int(st.Gid) == gid {
		others = 0o002
	}
	if fi.Mode().Perm()&others != 0 {
		return fmt.Errorf("directory of the socket %s: %s has mode %04o, which lets others write: chmod go-w %[2]s", socket,
			dir, fi.Mode().Perm())
	}
	return nil
}
