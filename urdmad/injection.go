package main

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/inject"
	"urdma/urdmad/attach/fabric"
	"urdma/urdmad/attach/injector"
)

// attachInjection lets urdma inject take links down, and inject errors into the subnet.
func (d *daemon) attachInjection() error {
	d.injector = injector.Attach(d.Server, injector.Config{CutLink: d.cutLink, Subnet: d.injectIntoSubnet,
		Because: d.watch.Because})
	d.watch.Why = d.injector.Why
	return nil
}

// cutLink implements injector.Config. It writes files.
func (d *daemon) cutLink(i int, down bool) {
	d.Links.Lock()
	defer d.Links.Unlock()
	if down {
		d.Links.Set(i, 0, linkCut)
		return
	}
	d.subnet.Enable(i) // also undo a disabling by ibportstate
	d.Links.Set(i, linkCut, 0)
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
