package suite

import (
	"fmt"

	"urdma/test/lab"
)

// pair is two hosts, each with a urdmad, and the wire between them. For loopback both are the same host.
type pair struct{ a, b *lab.Node }

// places are the hosts for measurements. Each is set up on first use. A host that can't be set up gives the same
// error each time. Idle hosts use no processor time.
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

// join returns the two hosts of a wire.
func (p *places) join(w lab.Wire) (pair, error) {
	key := fmt.Sprint(w.Name, w.MTU)
	f, ok := p.pairs[key]
	if !ok {
		f.what, f.err = p.setUp(w)
		p.pairs[key] = f
	}
	return f.what, f.err
}

// many allows perftest 1,024 queue pairs: with -R it makes one more.
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

// kernel returns two hosts without urdma, joined by veth with that MTU.
func (p *places) kernel(mtu int) (*lab.KernelPair, error) {
	f, ok := p.kernels[mtu]
	if !ok {
		f.what, f.err = p.setUpKernel(mtu)
		p.kernels[mtu] = f
	}
	return f.what, f.err
}

// frames returns two hosts joined by veth interfaces that nothing else uses.
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
