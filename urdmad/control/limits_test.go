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

	"golang.org/x/sys/unix"

	"urdma/schema"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
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

// Handles of what makeObjects makes.
const limitContext, limitPD, limitCQ, limitQP, limitChannel = 1, 2, 4, 5, 6

var limitPair = abi.CreateQPRequest{PD: limitPD, QPType: abi.QPTypeRC, SendCQ: limitCQ, RecvCQ: limitCQ}

// limitTest is a client that asks for too much.
type limitTest struct {
	t *testing.T
	r *running
	c *client
}

// asked are requests beyond each limit.
var asked = []struct {
	setting string
	errno   syscall.Errno
	ask     func(l *limitTest) error
}{
	{"limits.contexts is 1", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.OpenDeviceRequest, abi.HandleMessage](l.c, abi.OpenDevice, abi.OpenDeviceRequest{})
		return err
	}},
	{"limits.completion_channels is 1", syscall.ENOMEM, func(l *limitTest) (err error) {
		for i := 0; i < 3 && err == nil; i++ {
			_, err = call[abi.HandleMessage, abi.HandleMessage](l.c, abi.CreateChannel, abi.HandleMessage{Handle: limitContext})
		}
		return err
	}},
	{"limits.event_channels is 2", syscall.ENOMEM, func(l *limitTest) (err error) {
		for i := 0; i < 3 && err == nil; i++ {
			_, err = call[abi.Header, abi.HandleMessage](l.c, abi.CMCreateChannel, abi.Header{})
		}
		return err
	}},
	{"limits.cm_ids is 2", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.CMCreateIDRequest, abi.HandleMessage](l.c, abi.CMCreateID,
			abi.CMCreateIDRequest{Channel: limitChannel, PS: abi.PSTCP})
		return err
	}},
	{"limits.files is 1", syscall.ENOMEM, func(l *limitTest) (err error) {
		for i := 0; i < 2 && err == nil; i++ {
			_, err = addMemory(l.t, l.c, 1<<20)
		}
		return err
	}},
	{"limits.queue_bytes is 1048576", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.ResizeCQRequest, abi.CQResponse](l.c, abi.ResizeCQ,
			abi.ResizeCQRequest{Handle: limitCQ, CQE: 1 << 16})
		return err
	}},
	{"limits.protection_domains is 1", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.HandleMessage, abi.HandleMessage](l.c, abi.AllocPD, abi.HandleMessage{Handle: limitContext})
		return err
	}},
	{"limits.completion_queues is 1", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.CreateCQRequest, abi.CQResponse](l.c, abi.CreateCQ,
			abi.CreateCQRequest{Context: limitContext, CQE: 10})
		return err
	}},
	{"limits.queue_pairs is 1", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.CreateQPRequest, abi.QPResponse](l.c, abi.CreateQP, limitPair)
		return err
	}},
	{"limits.shared_receive_queues is 1", syscall.ENOMEM, func(l *limitTest) error {
		for range 2 {
			if _, err := call[abi.CreateSRQRequest, abi.SRQResponse](l.c, abi.CreateSRQ,
				abi.CreateSRQRequest{PD: limitPD, MaxWR: 1, MaxSGE: 1}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"limits.registered_bytes is 4096", syscall.ENOMEM, func(l *limitTest) error {
		_, err := call[abi.RegMRRequest, abi.RegMRResponse](l.c, abi.RegMR, abi.RegMRRequest{PD: limitPD, Addr: 1 << 20,
			Length: 4097, Access: abi.AccessLocalWrite, Path: abi.PathFallback})
		return err
	}},
	{"limits.memory_regions is 2", syscall.ENOMEM, func(l *limitTest) error {
		for range 2 {
			if _, err := call[abi.RegMRRequest, abi.RegMRResponse](l.c, abi.RegMR,
				abi.RegMRRequest{PD: limitPD, Access: abi.AccessLocalWrite}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"limits.clients is 2", syscall.EDQUOT, func(l *limitTest) error {
		for range 2 {
			other, err := dial(l.r.socket)
			if err != nil {
				return err
			}
			l.t.Cleanup(func() { other.conn.Close() })
			if _, err := call[abi.HelloRequest, abi.HelloResponse](other, abi.Hello,
				abi.HelloRequest{ABIVersion: abi.Version}); err != nil {
				return err
			}
		}
		return nil
	}},
}

// take makes a server log here.
func (l *logged) take(s *control.Server) {
	s.Log = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestLimits: what a client may have ends at each limit, with an errno for the
// program and a line for the administrator that names the setting; what is given
// back can be had again, by others too.
func TestLimits(t *testing.T) {
	var log logged
	r := start(t, log.take)
	r.server.SetLimits(account.Limits{QueuePairs: 1, SharedReceiveQueues: 1, MemoryRegions: 2, CompletionQueues: 1,
		ProtectionDomains: 1, RegisteredBytes: 4096,
		Contexts: 1, CompletionChannels: 1, EventChannels: 2, IDs: 2, Files: 1, Mappings: 4, QueueBytes: 1 << 20, Clients: 2})
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.makeObjects(); err != nil { // one of each, and a region of no bytes
		t.Fatal(err)
	}
	for _, x := range asked {
		if err := x.ask(&limitTest{t, r, c}); !errors.Is(err, x.errno) {
			t.Errorf("%s: the program sees %v, expected %v", x.setting, err, x.errno)
		}
		if !strings.Contains(log.String(), x.setting) {
			t.Errorf("no line of the log says that %s:\n%s", x.setting, log.String())
		}
	}
	if _, err := fetch(r.socket); err != nil {
		t.Errorf("looking inside does not work at the limit of clients: %v", err)
	}
	if _, err := call[abi.HandleMessage, abi.Header](c, abi.DestroyQP, abi.HandleMessage{Handle: limitQP}); err != nil {
		t.Error(err)
	}
	if _, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, limitPair); err != nil {
		t.Errorf("a queue pair in the place of one destroyed: %v", err)
	}
}

// TestEveryLimitIsTried: of clients and their number. Mappings are in
// TestMappingBudget, shares of users in TestUserShare.
func TestEveryLimitIsTried(t *testing.T) {
	for _, p := range schema.Properties() {
		tried := !strings.HasPrefix(p.Path, "limits.") || p.Path == "limits.mappings" || p.Path == "limits.user_share"
		for _, x := range asked {
			tried = tried || strings.HasPrefix(x.setting, p.Path+" is ")
		}
		if !tried {
			t.Errorf("%s is not tried", p.Path)
		}
	}
}

// addMemory shares a file of so many bytes.
func addMemory(t *testing.T, c *client, bytes int64) (uint32, error) {
	t.Helper()
	fd, err := unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	_, sealErr := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	if err := errors.Join(unix.Ftruncate(fd, bytes), sealErr); err != nil {
		t.Fatal(err)
	}
	resp, err := callWith[abi.Header, abi.HandleMessage](c, abi.AddFile, abi.Header{}, fd)
	return resp.Handle, err
}

// TestMappingBudget: regions far from each other take a mapping each, and what a
// client and all clients may have of them ends in time.
func TestMappingBudget(t *testing.T) {
	for _, x := range []struct {
		setting string
		limits  account.Limits
		totals  account.Totals
	}{
		{"limits.mappings is 8", account.Limits{Mappings: 8}, account.Totals{}},
		{"clients may have 8 mappings (vm.max_map_count)", account.Limits{}, account.Totals{Mappings: 8}},
	} {
		var log logged
		r := start(t, log.take, func(s *control.Server) { s.Limits, s.Totals = x.limits, x.totals })
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.makeObjects(); err != nil { // doorbells, a completion queue and a queue pair are 3
			t.Fatal(err)
		}
		file, err := addMemory(t, c, 64<<30)
		if err != nil {
			t.Fatal(err)
		}
		var made []uint32
		register := func() error {
			mr, err := call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR,
				abi.RegMRRequest{PD: 2, Length: 4096, Addr: 1 << 20, IOVA: 1 << 20,
					Access: abi.AccessLocalWrite, File: file, FileOffset: uint64(len(made)) << 30})
			if err == nil {
				made = append(made, mr.Handle)
			}
			return err
		}
		for err = nil; err == nil && len(made) < 20; {
			err = register()
		}
		if len(made) != 5 || !errors.Is(err, syscall.ENOMEM) || !strings.Contains(log.String(), x.setting) {
			t.Errorf("%d regions, then %v, expected 5 and ENOMEM; the log: %s", len(made), err, log.String())
		}
		if _, err := call[abi.HandleMessage, abi.Header](c, abi.DeregMR, abi.HandleMessage{Handle: made[0]}); err != nil {
			t.Fatal(err)
		}
		if err := register(); err != nil {
			t.Errorf("in the place of one deregistered: %v", err)
		}
		c.conn.Close()
		awaitClients(t, r, 0)
	}
}

// TestPortLimit: a port's max_qp holds over all clients, and what a client leaves
// behind counts no longer.
func TestPortLimit(t *testing.T) {
	var log logged
	r := start(t, log.take) // 64
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
	awaitClients(t, r, 2)
	if n, err := fill(clients[2], 40); err != nil {
		t.Error(fmt.Sprint("in the place of a client that has gone: ", n), err)
	}
}
