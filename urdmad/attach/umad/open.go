package umad

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Attach makes a control server answer OPEN_UMAD; it must be called before Serve.
func (s *Server) Attach(to *control.Server) {
	to.Attach(&control.Hooks{}, map[abi.Type]control.Request{abi.OpenUmad: control.Answer(s.open)})
}

// openAmounts are the resources of an open umad, which counts as a client of its own.
var openAmounts = account.Amounts{account.Clients: 1, account.Descriptors: 1}

// open turns the session into an open umad once the request is answered. As with the kernel's
// device file, which belongs to root, only the administrator may use the subnet.
func (s *Server) open(x *control.Session, m *abi.OpenUmadRequest, _ *control.Reply) error {
	switch {
	case m.Device >= uint32(len(x.Server().Devices)):
		return fmt.Errorf("umad: device %d, there are %d: %w", m.Device, len(x.Server().Devices), syscall.ENODEV)
	case !x.Owner.Admin:
		return syscall.EACCES
	case m.Issm > 1:
		return fmt.Errorf("umad: issm %d, expected 0 or 1: %w", m.Issm, syscall.EINVAL)
	}
	if err := x.Take(&openAmounts); err != nil {
		return err
	}
	err := x.Become(func() error {
		defer x.Give(&openAmounts)
		return s.Serve(x.UnixConn, int(m.Device), m.Issm == 1, x.Closer().Close)
	})
	if err != nil {
		x.Give(&openAmounts)
	}
	return err
}
