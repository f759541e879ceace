package serve

import (
	"sync/atomic"
	"testing"
)

// TestAddressLostAtStart: another host may claim a port's address at once, before there is a control server.
func TestAddressLostAtStart(t *testing.T) {
	c := &Core{}
	c.Links.core, c.Links.down = c, make([]atomic.Uint32, 1)
	c.addressLost(0)
	c.Background.Wait()
	if why := c.Links.Why(0); why != AddressLost {
		t.Errorf("the link is down for %#x, expected %#x", why, AddressLost)
	}
}
