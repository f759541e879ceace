package control

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Umad serves an open umad, or issm, of device dev over c until the client closes it.
// Descriptors that it does not use go to closing.
type Umad func(c *net.UnixConn, dev int, issm bool, closing func(*os.File)) error

// umadAmounts is what an open umad takes; it is a client of its own.
var umadAmounts = account.Amounts{account.Clients: 1, account.Descriptors: 1}

// openUmad makes the session an open umad, once it has been answered. As of the kernel's
// device, whose file is root's, the subnet is the administrator's.
func (x *Session) openUmad(m *abi.OpenUmadRequest, _ *Reply) error {
	if _, err := x.device(m.Device); err != nil {
		return err
	}
	switch {
	case x.ready || len(x.taps) > 0:
		return fmt.Errorf("control: the session is in other use: %w", syscall.EBUSY)
	case x.s.Umad == nil:
		return fmt.Errorf("control: this urdmad has no management datagrams: %w", syscall.ENODEV)
	case !x.Owner.Admin:
		return syscall.EACCES
	case m.Issm > 1:
		return fmt.Errorf("control: issm %d, expected 0 or 1: %w", m.Issm, syscall.EINVAL)
	}
	if err := x.Take(&umadAmounts); err != nil {
		return err
	}
	x.s.served(x)
	x.becomes = func() error {
		defer x.Give(&umadAmounts)
		return x.s.Umad(x.conn.UnixConn, int(m.Device), m.Issm == 1, x.closer.Close)
	}
	return nil
}
