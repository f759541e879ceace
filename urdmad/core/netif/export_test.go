package netif

// Groups returns the number of joined groups.
func (n *Interface) Groups() int {
	some := len(n.groups.joined)
	if n.groups.solicited != nil && n.groups.solicited.times == 0 {
		some--
	}
	return some
}
