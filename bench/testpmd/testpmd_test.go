package testpmd

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A testpmd whose port can't be opened goes on without; the error says why.
func TestPortThatCannotBeOpened(t *testing.T) {
	if _, err := exec.LookPath("dpdk-testpmd"); err != nil {
		t.Skip("dpdk-testpmd is not installed; make deps")
	}
	none := Port{Vdev: "net_af_packet0,iface=nosuch0"}
	_, err := Between(filepath.Join(t.TempDir(), "none"), none, none, 64, 0)
	if err == nil || !strings.Contains(err.Error(), "no port: ") || !strings.Contains(err.Error(), "failed to initialize net_af_packet0") {
		t.Errorf("got %v", err)
	}
}
