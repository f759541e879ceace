package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"urdma/test/programtest"
)

// startRaw starts a urdmad with a port of frames without a peer, on which raw packets are allowed.
func startRaw(t *testing.T) *real {
	t.Helper()
	dir, err := os.MkdirTemp("", "urdma-flows-") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "urdma.json")
	text := fmt.Sprintf(`{"ports": [{"vdev": "memif,role=server,socket=%s/wire.sock", "ipv4_address": "198.18.0.1/24",
		"mtu": 1500, "raw_packets": "all"}]}`, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startReal(t, "--config", config)
}

// TestFlows runs a program that checks what flows select.
func TestFlows(t *testing.T) {
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "flows"), "testdata/alone/flows.c", "-libverbs")
	startRaw(t).run(t, nil, binary)
}
