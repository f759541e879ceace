package test

import (
	"path/filepath"
	"testing"

	"urdma/test/programtest"
)

// TestNetlinkNames: the names that a program gets for its socket of NETLINK_RDMA fit into its buffers.
func TestNetlinkNames(t *testing.T) {
	d := startUrdmad(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "netlink"), "testdata/alone/netlink.c")
	if out, err := run(t, d, nil, binary); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
