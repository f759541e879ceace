package control

import (
	"urdma/inject"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

// This file answers those who ask for what urdma exec --strict has done.

// strictly is the rule that has a behaviour, abi.Strict*, done to a client, or nil.
func (n *injections) strictly(c *qp.Client, behaviour uint32) *injection {
	if !n.points[inject.Strictly] {
		return nil
	}
	for _, i := range n.rules {
		if i.Point == inject.Strictly && i.Strict.Behaviours&behaviour != 0 && &i.by.client.Client == c {
			return i
		}
	}
	return nil
}

// hit counts one that was done.
func (n *injections) hit(i *injection) {
	i.Hits++
	n.hits++
}

// Pick is qp.Faults'.
func (n *injections) Pick(c *qp.Client, posted int) int {
	i := n.strictly(c, abi.StrictSRQOrder)
	if i == nil {
		return 0
	}
	which := i.IntN(posted)
	if which > 0 {
		n.hit(i)
	}
	return which
}
