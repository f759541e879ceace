package private

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const pattern = "urdma-run-*"

// maxTemp is the longest path of the directory for temporary files: the address of a Unix socket has 108 bytes.
const maxTemp = 60

// Directory holds the sockets of private urdmads. Its lock lasts as long as the process; a later process removes a
// directory without a lock.
type Directory struct {
	Path string
	lock *os.File
}

// sharedMemory is a tmpfs that can be written even in read-only containers, where /tmp can't.
const sharedMemory = "/dev/shm"

// NewDirectory makes a directory and removes the directories of killed processes.
func NewDirectory() (*Directory, error) {
	places := []string{os.TempDir()}
	if len(places[0]) > maxTemp {
		places[0] = "/tmp"
	}
	if os.Getenv("TMPDIR") == "" {
		places = append(places, sharedMemory)
	}
	return directoryIn(places)
}

func directoryIn(places []string) (*Directory, error) {
	var all []string
	for _, temp := range places {
		d, err := newDirectory(temp)
		if err == nil {
			return d, nil
		}
		all = append(all, err.Error())
	}
	return nil, fmt.Errorf("a directory for the sockets of urdmad, which TMPDIR may name: %s", strings.Join(all, "; "))
}

func newDirectory(temp string) (*Directory, error) {
	sweep(temp)
	for {
		path, err := os.MkdirTemp(temp, pattern)
		if err != nil {
			return nil, err
		}
		d := &Directory{Path: path}
		if d.lock, err = lock(path); err == nil {
			if _, err = os.Stat(path); err == nil {
				return d, nil
			}
			d.lock.Close()
		}
		// sweep in another process may have removed it
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), os.RemoveAll(path))
		}
	}
}

// Remove removes the directory and its contents.
func (d *Directory) Remove() error { return errors.Join(os.RemoveAll(d.Path), d.lock.Close()) }

func lock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes the directories of killed processes. It cannot open those of other users.
func sweep(temp string) {
	left, _ := filepath.Glob(filepath.Join(temp, pattern)) // the pattern is well-formed
	for _, path := range left {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
			continue
		}
		if f, err := lock(path); err == nil {
			_ = os.RemoveAll(path) // a later run tries again
			f.Close()
		}
	}
}
