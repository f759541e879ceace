package main

import (
	"context"
	"net/netip"

	"urdma/config"
	"urdma/inspect"
	"urdma/urdmad/attach/responder"
	"urdma/verbs/probe"
)

// newResponder makes the responder, which answers urdma ping of other hosts.
func (d *daemon) newResponder() error {
	c := responder.Config{Socket: d.Config.Socket, Own: d.own, Log: d.Log}
	d.responder = responder.New(c, responderPolicy(d.Config))
	d.Expected = d.responder.Expected
	return nil
}

// own implements responder.Config.
func (d *daemon) own(a netip.Addr) bool {
	for i := range d.Server.Devices {
		if d.Server.Devices[i].At().Address.Addr() == a {
			return true
		}
	}
	return false
}

// listenOverTCP lets requests over TCP reach the responder.
func (d *daemon) listenOverTCP() error {
	e := d.Pollers[0].Engine
	for dev := range d.Config.Ports {
		if !e.OverTCP(dev) {
			continue
		}
		if err := e.MPA.Listen(dev, netip.AddrPortFrom(e.Interface(dev).IP(), probe.Port)); err != nil {
			d.log.Warn("the responder cannot be reached over TCP", "port", d.Config.Ports[dev].Name,
				"number", probe.Port, "error", err)
		}
	}
	return nil
}

func (d *daemon) runResponder(ctx context.Context) {
	d.Background.Go(func() { d.responder.Run(ctx) })
}

func (d *daemon) applyResponder(c *config.Config) error {
	d.responder.SetPolicy(responderPolicy(c))
	return nil
}

func responderPolicy(c *config.Config) responder.Policy {
	return responder.Policy{Serve: c.Responder == config.ResponderPing, Allow: c.ResponderAllow}
}

// aboutResponder returns the responder's part of a snapshot.
func (d *daemon) aboutResponder() *inspect.Responder {
	p, n := d.responder.Policy(), d.responder.Counts()
	r := &inspect.Responder{Serves: config.ResponderOff, Allow: []string{}, Port: probe.Port, Open: n.Open,
		Served:  n.Served,
		Refused: n.Refused}
	if p.Serve {
		r.Serves = config.ResponderPing
	}
	for _, a := range p.Allow {
		r.Allow = append(r.Allow, a.String())
	}
	return r
}
