package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"urdma/test/bystander"
	"urdma/verbs"
)

// connection is a program with a connection of its own, which works for a while and ends in one of many ways.
func (s *soak) connection(ctx context.Context, r *rand.Rand) error {
	server, client := s.either(r)
	p, err := bystander.New(ctx, server.Socket(), client.Socket(), server.Address+":0", r.Uint64())
	if err != nil {
		return err
	}
	s.connects.Add(1)
	if err := objects(p.Client.Client, r); err != nil {
		return err
	}
	time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
	defer p.Close()
	if r.IntN(2) == 0 {
		p.Break(r.IntN(2) == 0)
		return nil
	}
	if err := p.Stop(); err != nil {
		return fmt.Errorf("a connection from %s to %s: %w", client.Name, server.Name, err)
	}
	return nil
}

// objects makes some objects of every kind and destroys some of them; the others end with the client.
func objects(c *verbs.Client, r *rand.Rand) error {
	x, err := c.Devices()[0].Open()
	if err != nil {
		return err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return err
	}
	for range r.IntN(20) {
		m, err := pd.AllocMemory(1+r.IntN(1<<20), verbs.LocalWrite|verbs.RemoteRead)
		if err != nil {
			return err
		}
		if r.IntN(2) == 0 {
			if err := m.Close(); err != nil {
				return err
			}
		}
	}
	for range r.IntN(4) {
		if err := queues(x, pd, r); err != nil {
			return err
		}
	}
	return nil
}

func queues(x *verbs.Context, pd *verbs.PD, r *rand.Rand) error {
	ch, err := x.CreateCompChannel()
	if err != nil {
		return err
	}
	cq, err := x.CreateCQ(1+r.IntN(1000), ch)
	if err != nil {
		return err
	}
	q, err := pd.CreateQP(cq, cq, verbs.QPOptions{SendWR: 1 + r.IntN(500), RecvWR: 1 + r.IntN(500)})
	if err != nil || r.IntN(2) == 0 {
		return err
	}
	for _, object := range []interface{ Close() error }{q, cq, ch} {
		if err := object.Close(); err != nil {
			return err
		}
	}
	return nil
}
