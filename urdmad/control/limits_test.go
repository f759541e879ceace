package control_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestLimits: what a client may have ends at each limit, with an errno for the
// program and a line for the administrator that names the setting; what is given
// back can be had again, by others too.
func TestLimits(t *testing.T) {
	r := start(t)
	var log logged
	r.server.Log = slog.New(slog.NewTextHandler(&log, nil))
	r.server.SetLimits(control.Limits{QueuePairs: 1, MemoryRegions: 2, CompletionQueues: 1, ProtectionDomains: 1, RegisteredBytes: 4096, Clients: 2})
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeObjects(); err != nil { // one of each, and a region of no bytes
		t.Fatal(err)
	}
	const ctx, pd, region, cq, qp = 1, 2, 3, 4, 5
	pair := abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeRC, SendCQ: cq, RecvCQ: cq}
	for _, x := range []struct {
		setting string
		errno   syscall.Errno
		ask     func() error
	}{
		{"limits.protection_domains is 1", syscall.ENOMEM, func() error {
			_, err := call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: ctx})
			return err
		}},
		{"limits.completion_queues is 1", syscall.ENOMEM, func() error {
			_, err := call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ, abi.CreateCQRequest{Context: ctx, CQE: 10})
			return err
		}},
		{"limits.queue_pairs is 1", syscall.ENOMEM, func() error {
			_, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, pair)
			return err
		}},
		{"limits.registered_bytes is 4096", syscall.ENOMEM, func() error {
			_, err := call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR, abi.RegMRRequest{PD: pd, Addr: 1 << 20, Length: 4097, Access: abi.AccessLocalWrite, Path: abi.PathFallback})
			return err
		}},
		{"limits.memory_regions is 2", syscall.ENOMEM, func() error {
			for range 2 {
				if _, err := call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR, abi.RegMRRequest{PD: pd, Access: abi.AccessLocalWrite}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"limits.clients is 2", syscall.EDQUOT, func() error {
			for range 2 {
				other, err := dial(r.socket)
				if err != nil {
					return err
				}
				t.Cleanup(func() { other.conn.Close() })
				if _, err := call[abi.HelloRequest, abi.HelloResponse](other, abi.Hello, abi.HelloRequest{ABIVersion: abi.Version}); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		if err := x.ask(); !errors.Is(err, x.errno) {
			t.Errorf("%s: the program sees %v, expected %v", x.setting, err, x.errno)
		}
		if !strings.Contains(log.String(), x.setting) {
			t.Errorf("no line of the log says that %s:\n%s", x.setting, log.String())
		}
	}
	if _, err := fetch(r.socket); err != nil {
		t.Errorf("looking inside does not work at the limit of clients: %v", err)
	}
	if _, err := call[abi.HandleMessage, abi.Header](c, abi.DestroyQP, abi.HandleMessage{Handle: qp}); err != nil {
		t.Error(err)
	}
	if _, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, pair); err != nil {
		t.Errorf("a queue pair in the place of one destroyed: %v", err)
	}
}

// TestPortLimit: a port's max_qp holds over all clients, and what a client leaves
// behind counts no longer.
func TestPortLimit(t *testing.T) {
	r := start(t) // 64
	var log logged
	r.server.Log = slog.New(slog.NewTextHandler(&log, nil))
	pair := abi.CreateQPRequest{PD: 2, QPType: abi.QPTypeRC, SendCQ: 4, RecvCQ: 4}
	fill := func(c *client, n int) (made int, err error) {
		for made < n {
			if _, err = call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, pair); err != nil {
				return made, err
			}
			made++
		}
		return made, nil
	}
	var clients []*client
	for range 3 {
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.makeObjects(); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if n, err := fill(clients[0], 40); err != nil {
		t.Fatal(n, err)
	}
	n, err := fill(clients[1], 40)
	if want := 64 - 40 - len(clients); n != want || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("the second client made %d queue pairs and got %v, expected %d and ENOMEM", n, err, want)
	}
	if !strings.Contains(log.String(), "ports[0].max_qp is 64, and urdma0 has as many queue pairs") {
		t.Errorf("the log does not name the limit:\n%s", log.String())
	}
	clients[0].conn.Close()
	for range 1000 {
		if _, err = fill(clients[2], 1); err == nil {
			break
		}
	}
	if n, err := fill(clients[2], 39); err != nil {
		t.Error(fmt.Sprint("in the place of a client that has gone: ", n), err)
	}
}
