package control

import (
	"urdma/urdmad/control/account"
	"urdma/urdmad/qp"
	"urdma/wire"
)

// ownerOfNumber reports whether fn holds for who has a queue pair.
func (c *capture) ownerOfNumber(n wire.QPN, fn func(*account.Owner) bool) bool {
	q := c.s.Engine.QPs.Pair(uint32(n))
	return q != nil && c.ownerOfClient(q.Client, fn)
}

func (c *capture) ownerOfClient(client *qp.Client, fn func(*account.Owner) bool) bool {
	for _, x := range c.s.attached {
		if &x.client.Client == client && fn(&x.Owner) {
			return true
		}
	}
	return false
}
