package main

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/inject"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/injector"
	"urdma/urdmad/core/mailbox"
)

// cuts are what urdma inject has links be, in order.
type cuts struct{ mailbox.Box[cut] }

type cut struct {
	port int
	down bool
}

// attachInjection has urdma inject take links down, and reach the subnet.
func (d *daemon) attachInjection() error {
	d.injector = injector.Attach(d.Server, injector.Config{CutLink: d.cutLink, Subnet: d.injectIntoSubnet, Because: d.watch.Because})
	d.watch.Why = d.injector.Why
	return nil
}

// cutLink is injector.Config's.
func (d *daemon) cutLink(i int, down bool) {
	d.cuts.Put(cut{i, down})
	d.Background.Go(func() { // files are not written on the worker's thread
		d.Links.Lock()
		defer d.Links.Unlock()
		for _, c := range d.cuts.Take() { // in their order, whichever goroutine runs first
			if c.down {
				d.Links.Set(c.port, 0, linkCut)
				continue
			}
			d.subnet.Enable(c.port) // what ibportstate has disabled, too
			d.Links.Set(c.port, linkCut, 0)
		}
	})
}

// injectIntoSubnet is injector.Config's.
func (d *daemon) injectIntoSubnet(one *inject.Statement, look bool) (err error) {
	if !look {
		d.Background.Go(func() { _ = d.subnet.Inject(one.At, one.Errors, false) }) // which it has looked at before
		return nil
	}
	err = d.subnet.Inject(one.At, one.Errors, true)
	switch {
	case errors.Is(err, fabric.ErrNotFound):
		return fmt.Errorf("%w: %w", err, syscall.ENODEV)
	case err != nil:
		return fmt.Errorf("%w: %w", err, syscall.ENOTUNIQ)
	}
	return nil
}
