package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// Listener returns the control socket that systemd opened for us, or nil if it opened none. The caller owns it.
// Closing it does not remove the socket's file: that is systemd's, and the next client starts urdmad again.
func Listener() (*net.UnixListener, error) { return choose(activation.Files(true)) }

// choose returns the only listening SOCK_SEQPACKET socket among files and closes all files. Any other file is a
// mistake in the socket unit.
func choose(files []*os.File) (found *net.UnixListener, err error) {
	var errs []error
	for _, f := range files {
		l, err := unixListener(f)
		switch {
		case err != nil:
			errs = append(errs, err)
		case found != nil:
			l.Close()
			errs = append(errs, fmt.Errorf("systemd: descriptor %s: a second control socket; expected one "+
				"ListenSequentialPacket= in urdmad.socket", f.Name()))
		default:
			found = l
		}
		f.Close()
	}
	if len(errs) > 0 && found != nil {
		found.Close()
		found = nil
	}
	return found, errors.Join(errs...)
}

// unixListener duplicates the descriptor of f.
func unixListener(f *os.File) (*net.UnixListener, error) {
	const expected = "expected a listening unix socket, ListenSequentialPacket= in urdmad.socket"
	fd := int(f.Fd())
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("systemd: descriptor %s: found no socket (%w); %s", f.Name(), err, expected)
	}
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || listening == 0 || kind != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("systemd: descriptor %s: found a socket of type %d, listening %d; %s", f.Name(), kind,
			listening, expected)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("systemd: descriptor %s: %w", f.Name(), err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("systemd: descriptor %s: found a socket of network %s; %s", f.Name(), l.Addr().Network(),
			expected)
	}
	return u, nil
}
