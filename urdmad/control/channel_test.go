package control_test

import (
	"syscall"
	"testing"

	"urdma/verbs/abi"
)

// TestChannelInUse: an event channel can be destroyed once none of its ids is left,
// those of connection requests included, and those that were moved to it.
func TestChannelInUse(t *testing.T) {
	r := start(t)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeObjects(); err != nil {
		t.Fatal(err)
	}
	first, events := c.channel(t)
	second, _ := c.channel(t)
	busy := func(channel uint32) {
		t.Helper()
		c.refuses(t, abi.CMDestroyChannel, channel, syscall.EBUSY)
	}
	v := c.request(t, first, events)
	c.takes(t, abi.CMDestroyID, v.listener)
	c.takes(t, abi.CMDestroyID, v.active)
	busy(first)
	migrate := func(channel uint32) {
		t.Helper()
		succeeded(t)(call[abi.CMValueRequest, abi.Header](c, abi.CMMigrateID,
			abi.CMValueRequest{ID: v.child, Value: channel}))
	}
	migrate(first)
	busy(first)
	migrate(second)
	c.takes(t, abi.CMDestroyChannel, first)
	busy(second)
	c.takes(t, abi.CMDestroyID, v.child)
	c.takes(t, abi.CMDestroyChannel, second)
}
