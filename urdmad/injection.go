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

// cuts are the link changes that urdma inject has asked for, in order.
type cuts struct{ mailbox.Box[cut] }

type cut struct {
	port int
	down bool
}

// attachInjection lets urdma inject take links down, and inject errors into the subnet.
func (d *daemon) attachInjection() error {
	d.injector = injector.Attach(d.Server, injector.Config{CutLink: d.cutLink, Subnet: d.injectIntoSubnet,
		Because: d.watch.Because})
	d.watch.Why = d.injector.Why
	return nil
}

// cutLink implements injector.Config.
func (d *daemon) cutLink(i int, down bool) {
	d.cuts.Put(cut{i, down})
	d.Background.Go(func() { // the worker's thread must not write files
		d.Links.Lock()
		defer d.Links.Unlock()
		for _, c := range d.cuts.Take() { // in order, whichever goroutine runs first
			if c.down {
				d.Links.Set(c.port, 0, linkCut)
				continue
			}
			d.subnet.Enable(c.port) // also undo a disabling by ibportstate
			d.Links.Set(c.port, linkCut, 0)
		}
	})
}

// injectIntoSubnet implements injector.Config.
func (d *daemon) injectIntoSubnet(one *inject.Statement, look bool) (err error) {
	if !look {
		d.Background.Go(func() { _ = d.subnet.Inject(one.At, one.Errors, false) }) // the statement was checked before
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
