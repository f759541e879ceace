package main

import (
	"fmt"

	"urdma/config"
	"urdma/urdmad/kernelif"
)

// shareWithKernel makes the network interface that the kernel gets on port i.
func (d *daemon) shareWithKernel(i int, p *config.Port) error {
	info := d.ports[i].Info()
	k, err := kernelif.Open(kernelif.Config{Name: p.KernelInterface, MAC: info.MAC, MTU: info.MTU, Address: p.Address})
	if err != nil {
		return fmt.Errorf("ports[%d].kernel_interface: %w; it needs CAP_NET_ADMIN, /dev/net/tun and a name that no interface has", i, err)
	}
	d.kernels = append(d.kernels, k)
	n := d.engine.Interface(i)
	n.Kernel = k.Take
	k.Run(func(frame []byte, done func()) {
		d.engine.Do(func() { n.Send(frame); done() })
		d.worker.Wake()
	})
	d.ports[i].Watch(k.SetLink)
	k.SetLink(d.ports[i].Link()) // it may have changed in between
	d.log.Info("the kernel has a network interface on the port", "port", p.Name, "interface", p.KernelInterface)
	return nil
}
