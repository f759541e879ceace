package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// limited sets a (soft) limit of the running urdmad, by the option of prlimit(1). The returned function restores it.
func limited(t *testing.T, n *lab.Node, option string, to uint64) (lift func()) {
	t.Helper()
	set := func(to string) {
		// As urdmad's own user: changing other users' limits needs a capability.
		p, err := n.Start("prlimit", fmt.Sprintf("--pid=%d", n.Daemon.PID()), "--"+option+"="+to+":")
		if err == nil {
			err = p.Wait(patience)
		}
		if err != nil {
			t.Fatalf("prlimit: %v: %s", err, p.Output())
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", n.Daemon.PID()))
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(limitNames[option] + ` +(\S+)`).FindStringSubmatch(string(text))
	set(fmt.Sprint(to))
	return func() { set(old[1]) }
}

// limitNames are the options of prlimit(1) as proc_pid_limits(5) spells them.
var limitNames = map[string]string{"nofile": "Max open files", "as": "Max address space"}

// status returns a number from /proc/PID/status, in its unit.
func status(t *testing.T, p *lab.Process, field string) (n uint64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if after, ok := strings.CutPrefix(line, field+":"); ok {
			_, _ = fmt.Sscan(after, &n)
		}
	}
	return n
}

func descriptors(t *testing.T, n *lab.Node) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Daemon.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// hoard is a client that makes objects until it is refused.
type hoard struct {
	client *verbs.Client
	ctx    *verbs.Context
	pd     *verbs.PD
}

func newHoard(t *testing.T, n *lab.Node) *hoard {
	t.Helper()
	c, err := verbs.Open(n.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	x, err := c.Devices()[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	pd, err := x.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return &hoard{c, x, pd}
}

// until calls make until it fails, as it must, and returns the error.
func until(t *testing.T, most int, make func() error) error {
	t.Helper()
	for range most {
		if err := make(); err != nil {
			return err
		}
	}
	t.Errorf("%d objects were made and none refused", most)
	return nil
}

// TestDaemonWithoutDescriptors: at its limit urdmad refuses requests that need a descriptor, with the errno for that.
// It keeps all its clients, doesn't spin, and serves waiting clients as soon as there are descriptors again.
func TestDaemonWithoutDescriptors(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	h := newHoard(t, a)
	p.advances("at the beginning")
	before := descriptors(t, a)
	lift := limited(t, a, "nofile", uint64(before+8))
	err := until(t, 1000, func() error { _, err := h.ctx.CreateCompChannel(); return err })
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) && !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("a completion channel without a descriptor for it: %v", err)
	}
	if _, err := h.pd.AllocMemory(4096, verbs.LocalWrite); err != nil && !errors.Is(err, syscall.EMFILE) &&
		!errors.Is(err, syscall.ENOMEM) {
		t.Errorf("memory without a descriptor: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	waits := make(chan error, 1)
	go func() {
		c, err := verbs.OpenContext(ctx, a.Socket())
		if err == nil {
			c.Close()
		}
		waits <- err
	}()
	p.advances("without descriptors")
	notSpinning(t, a)
	lift()
	if err := <-waits; err != nil {
		t.Errorf("a client that came while there was no descriptor: %v", err)
	}
	if _, err := h.ctx.CreateCompChannel(); err != nil {
		t.Errorf("a completion channel afterwards: %v", err)
	}
	h.client.Close()
	awaits(t, "its descriptors are given back", patience, func() bool { return descriptors(t, a) <= before })
	connects(t, a, a)
}

// notSpinning: a urdmad with one pair that pauses must be idle most of the time.
func notSpinning(t *testing.T, n *lab.Node) {
	t.Helper()
	said := strings.Count(n.Daemon.Output(), "\n")
	time.Sleep(time.Second)
	if lines := strings.Count(n.Daemon.Output(), "\n") - said; lines > 50 {
		t.Errorf("urdmad logs %d lines a second:\n%s", lines, lab.Tail(n.Daemon.Output(), 5))
	}
}

// TestClientWithoutDescriptors: a program with any number of descriptors works or prints an error. It neither hangs
// nor crashes, and none of its objects remain.
func TestClientWithoutDescriptors(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	server := serveRping(t, a)
	before := descriptors(t, a)
	worked := 0
	for limit := 3; limit <= 40; limit++ {
		worked += tryRping(t, a, fmt.Sprintf("--nofile=%d", limit))
	}
	if worked == 0 || worked == 38 {
		t.Errorf("rping worked with %d of 38 limits: the limits are not at the edge", worked)
	}
	t.Logf("rping worked with %d of 38 limits of descriptors", worked)
	p.advances("afterwards")
	awaits(t, "the descriptors of dead programs are given back", patience,
		func() bool { return descriptors(t, a) <= before })
	server.Kill()
}

// serveRping serves clients one after the other.
func serveRping(t *testing.T, n *lab.Node) *lab.Process {
	t.Helper()
	server, err := (lab.Pair{ServerNode: n, ClientNode: n,
		Server: []string{"rping", "-s", "-P", "-a", n.Address}}).StartServer()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// tryRping runs a client under a limit of prlimit(1) and reports whether it worked. It may fail, but not hang, or end
// by a signal.
func tryRping(t *testing.T, n *lab.Node, limit string) int {
	t.Helper()
	c, err := n.Exec("prlimit", limit, "rping", "-c", "-V", "-C", "3", "-a", n.Address)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Wait(2 * patience)
	switch {
	case errors.Is(err, lab.ErrTimeout):
		t.Errorf("%s: rping hangs: %v\n%s", limit, err, lab.Tail(c.Output(), 10))
	case strings.Contains(c.Output(), "libgcc_s.so.1 must be installed"):
		// glibc ends a program itself if a thread ends and that library can't be mapped any more.
	case err != nil && !strings.Contains(err.Error(), "exit status"):
		t.Errorf("%s: rping: %v\n%s", limit, err, lab.Tail(c.Output(), 10))
	case err == nil && !strings.Contains(c.Output(), "wait for "):
		return 1
	}
	return 0
}

// TestDaemonWithoutAddressSpace: if the kernel refuses a mapping to urdmad, the client gets ENOMEM, and nobody else
// is affected.
func TestDaemonWithoutAddressSpace(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	h := newHoard(t, a)
	p.advances("at the beginning")
	lift := limited(t, a, "as", (status(t, a.Daemon, "VmSize")+32<<10)<<10)
	for what, make := range map[string]func() error{
		"memory": func() error { _, err := h.pd.AllocMemory(64<<20, verbs.LocalWrite); return err },
		"queues": func() error { _, err := h.ctx.CreateCQ(1<<16, nil); return err },
	} {
		if err := until(t, 40, make); !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("%s that urdmad can't map: %v", what, err)
		}
		p.advances("without address space")
	}
	running(t, a)
	lift()
	if _, err := h.pd.AllocMemory(64<<20, verbs.LocalWrite); err != nil {
		t.Errorf("memory afterwards: %v", err)
	}
	connects(t, a, a)
}

// TestClientWithoutAddressSpace: a program works or prints an error.
func TestClientWithoutAddressSpace(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	server := serveRping(t, a)
	worked, tried := 0, 0
	for mb := 8; mb <= 40; mb++ {
		tried++
		worked += tryRping(t, a, fmt.Sprintf("--as=%d", mb<<20))
	}
	if worked == 0 {
		t.Errorf("rping worked with none of %d limits", tried)
	}
	t.Logf("rping worked with %d of %d limits of address space", worked, tried)
	p.advances("afterwards")
	server.Kill()
}
