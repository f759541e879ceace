package control_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// TestSilentConnections: however many connections say nothing, a client gets in,
// and they end soon.
func TestSilentConnections(t *testing.T) {
	r := start(t)
	var silent []*client
	for range control.MaxWaiting + 16 {
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.conn.Close()
		silent = append(silent, c)
	}
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	if _, err := call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello,
		abi.HelloRequest{ABIVersion: abi.Version}); err != nil {
		t.Errorf("a client beside silent connections: %v", err)
	}
	if _, err := fetch(r.socket); err != nil {
		t.Errorf("looking inside beside silent connections: %v", err)
	}
	end := time.Now().Add(control.FirstRequestTime + time.Minute)
	for i, s := range silent {
		_ = s.conn.SetReadDeadline(end)
		if _, err := s.conn.Read(make([]byte, 16)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("silent connection %d is still open", i)
		}
	}
	if _, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{}); err != nil {
		t.Errorf("a client that has been quiet for a while: %v", err)
	}
}
