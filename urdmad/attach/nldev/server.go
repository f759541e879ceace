package nldev

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/inspect"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Config has what the answers are made of.
type Config struct {
	// Devices returns the names of all devices; a device's place in the list is its index.
	Devices func() []string
	Sysfs   string // directory of the tree that stands for /sys
	// Shown returns the directory and the devices' names there as a program shows them; nil: Sysfs and Devices.
	Shown func(*abi.Shown) (sysfs string, names []string, err error)
	// Snapshot returns the objects that the viewer may see.
	Snapshot func(ctx context.Context, viewer *account.Owner) (*inspect.Snapshot, error)

	names []string // from Shown
}

// Attach makes a control server answer OPEN_RDMA_NETLINK; it must be called before Serve.
func Attach(to *control.Server, c Config) {
	to.Attach(&control.Hooks{}, map[abi.Type]control.Request{abi.OpenRDMANetlink: control.Answer(c.open)})
}

// amounts are the resources of an open socket, which counts as a client of its own.
var amounts = account.Amounts{account.Clients: 1, account.Descriptors: 1}

// open turns the session into an open socket once the request is answered.
func (c *Config) open(x *control.Session, m *abi.OpenRDMANetlinkRequest, _ *control.Reply) error {
	seen := *c
	if c.Shown != nil {
		var err error
		if seen.Sysfs, seen.names, err = c.Shown(&m.Shown); err != nil {
			return err
		}
	}
	if err := x.Take(&amounts); err != nil {
		return err
	}
	err := x.Become(func() error {
		defer x.Give(&amounts)
		return seen.serve(x)
	})
	if err != nil {
		x.Give(&amounts)
	}
	return err
}

// maxRequest is the length of the longest request in bytes; a longer one ends the connection.
const maxRequest = 4096

// serve answers requests until the program closes the socket. A program that doesn't read its answers makes
// only its own connection wait.
func (c *Config) serve(x *control.Session) error {
	buf := make([]byte, maxRequest)
	for {
		n, err := x.Receive(buf)
		x.DropFiles() // no request has any
		if err != nil {
			return err
		}
		for _, m := range c.answer(buf[:n], &x.Account) {
			if _, err := x.UnixConn.Write(m); errors.Is(err, syscall.EPIPE) {
				return nil
			} else if err != nil {
				return fmt.Errorf("nldev: %w", err)
			}
		}
	}
}

// Requests, all of which only read.
const (
	cmdGet     = 1
	cmdPortGet = 5
	cmdSysGet  = 6
	cmdResGet  = 9
	cmdStatGet = 17
)

// answer returns the messages that answer a client's request.
func (c *Config) answer(b []byte, who *account.Account) [][]byte {
	r, err := parse(b)
	if err != nil {
		return [][]byte{r.failed(err)}
	}
	var list []attributes
	switch kind, isObject := kinds[r.command]; {
	case isObject, r.command == cmdResGet:
		list, err = c.objects(&r, kind, who)
	case r.command == cmdGet:
		list, err = c.devices(&r)
	case r.command == cmdPortGet:
		list, err = c.ports(&r, c.port)
	case r.command == cmdStatGet && r.has[attrStatRes] == nil:
		list, err = c.ports(&r, c.counters)
	case r.command == cmdStatGet && r.dump(): // counters bound to queue pairs: there are none
	case r.command == cmdSysGet:
		const shared, yes = 1, 1 // devices are shared by network namespaces; memory is copied on fork
		list = []attributes{attributes(nil).u8(attrNetnsMode, shared).u8(attrCopyOnFork, yes)}
	default:
		err = unix.EOPNOTSUPP
	}
	return r.answered(list, err)
}
