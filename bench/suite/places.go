package suite

import (
	"fmt"

	"urdma/test/lab"
)

// pair is two hosts, each with a urdmad, and the wire between them. On the
// loopback both are one.
type pair struct{ a, b *lab.Node }

// places are the hosts that measurements run on. Each is set up when it is first
// asked for; one that can't be had gives the same error every time. Idle ones
// take no processor time.
type places struct {
	build   string
	pairs   map[string]found[pair]
	kernels map[int]found[*lab.KernelPair]
	bare    found[*lab.KernelPair] // for testpmd, whose drivers change the interfaces
	labs    []*lab.Lab
}

type found[T any] struct {
	what T
	err  error
}

func newPlaces(build string) *places {
	return &places{build: build, pairs: map[string]found[pair]{}, kernels: map[int]found[*lab.KernelPair]{}}
}

func (p *places) close() {
	for _, l := range p.labs {
		l.Close()
	}
}

func (p *places) newLab() (*lab.Lab, error) {
	l, err := lab.New(p.build)
	if err == nil {
		p.labs = append(p.labs, l)
	}
	return l, err
}

// join gives the two hosts of a wire.
func (p *places) join(w lab.Wire) (pair, error) {
	key := fmt.Sprint(w.Name, w.MTU)
	f, ok := p.pairs[key]
	if !ok {
		f.what, f.err = p.setUp(w)
		p.pairs[key] = f
	}
	return f.what, f.err
}

// many lets perftest have 1,024 queue pairs: with -R it makes one more.
var many = lab.Config{"limits": lab.Config{"queue_pairs": 4096}}

func (p *places) setUp(w lab.Wire) (pair, error) {
	l, err := p.newLab()
	if err == nil {
		err = l.Can(w)
	}
	if err != nil {
		return pair{}, err
	}
	a, b, err := l.Join(w, many)
	return pair{a, b}, err
}

// kernel gives two hosts without urdma, joined by veth of that MTU.
func (p *places) kernel(mtu int) (*lab.KernelPair, error) {
	f, ok := p.kernels[mtu]
	if !ok {
		f.what, f.err = p.setUpKernel(mtu)
		p.kernels[mtu] = f
	}
	return f.what, f.err
}

// frames gives two hosts joined by veth whose interfaces nobody else uses.
func (p *places) frames() (*lab.KernelPair, error) {
	if p.bare.what == nil && p.bare.err == nil {
		p.bare.what, p.bare.err = p.setUpKernel(1500)
	}
	return p.bare.what, p.bare.err
}

func (p *places) setUpKernel(mtu int) (*lab.KernelPair, error) {
	l, err := p.newLab()
	if err == nil {
		err = l.Namespaces()
	}
	if err != nil {
		return nil, err
	}
	return l.JoinKernel(mtu)
}
