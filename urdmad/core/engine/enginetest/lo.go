package enginetest

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// SetUpLo adds the addresses 10.0.0.0/8 to interface lo, for Options.TCP. It must run in the
// test's own network namespace.
func SetUpLo() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return err
	}
	if err := r.SetInet4Addr(netip.MustParseAddr("10.0.0.1").AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)
}
