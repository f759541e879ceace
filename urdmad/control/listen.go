package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
)

// Listen makes the control socket. Its directory must exist. A stale socket is replaced; a live
// socket or any other file is an error.
func Listen(path string, mode os.FileMode) (*net.UnixListener, error) {
	if c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}); err == nil {
		defer c.Close()
		var other account.Owner
		other.Learn(c)
		return nil, fmt.Errorf("control: another urdmad, process %d, listens on %s", other.PID, path)
	} else if errors.Is(err, unix.ECONNREFUSED) {
		if err := removeStale(path); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("control: listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// removeStale removes a socket on which nobody listens. Other files are an error: connect(2)
// fails with ECONNREFUSED for them too.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is %s, expected a socket or no file; choose another path by --socket, \"socket\" in urdma.json or URDMA_SOCKET", path, kindOf(fi.Mode()))
	}
	return os.Remove(path)
}

func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "a regular file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	default:
		return "a device"
	}
}
