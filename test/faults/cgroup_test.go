package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// memoryGroup makes a memory cgroup with a limit, or skips the test.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	dir, control := labtest.MemoryGroup(t, "memory.max", "memory.limit_in_bytes")
	if err := put(control, limit); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	for _, swap := range []string{"memory.swap.max", "memory.memsw.limit_in_bytes"} {
		_ = put(filepath.Join(dir, swap), limit) // if this version has a swap limit
	}
	return dir
}

// put writes a number to an existing file.
func put(file string, number int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(f, number)
	return errors.Join(err, f.Close())
}

// within starts a process in a cgroup: children begin in their parent's cgroup.
func within(t *testing.T, group string, start func() error) {
	t.Helper()
	own := filepath.Dir(group)
	if err := put(filepath.Join(group, "cgroup.procs"), os.Getpid()); err != nil {
		t.Skipf("no process can be put into a cgroup: %v", err)
	}
	err := start()
	if back := put(filepath.Join(own, "cgroup.procs"), os.Getpid()); back != nil {
		t.Fatalf("this process can't leave the cgroup: %v", back)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDaemonInSmallGroup: a urdmad in a container with little memory refuses queues for which there is no memory.
// Requests of its clients don't get it killed.
func TestDaemonInSmallGroup(t *testing.T) {
	group := memoryGroup(t, 256<<20)
	a, _ := labtest.Join(t, lab.Loopback, nil)
	if err := a.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	within(t, group, a.StartDaemon)
	p := pair(t, a, a)
	h := newHoard(t, a)
	l, err := h.client.Listen(a.Address + ":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	go func() {
		for {
			_, err := l.Accept(ctx, &verbs.ConnOptions{PD: h.pd, QP: verbs.QPOptions{SendWR: 1, RecvWR: 1}})
			if errors.Is(err, verbs.ErrClosed) || ctx.Err() != nil {
				return
			}
		}
	}()
	m, err := h.pd.AllocMemory(4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	err = until(t, 500, func() error {
		c, err := h.client.Dial(ctx, l.Addr().String(),
			&verbs.ConnOptions{PD: h.pd, QP: verbs.QPOptions{SendWR: 8192, RecvWR: 1, SendSGE: 16}})
		if err == nil {
			fill(c, m)
			made++
		}
		running(t, a)
		return err
	})
	if !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("a queue pair without memory for it: %v", err)
	}
	p.advances("with all memory for queues taken")
	t.Logf("%d queue pairs full of 8,192 Sends in 256 MiB; urdmad has %d kB resident", made, status(t, a.Daemon, "VmRSS"))
	h.client.Close()
	connects(t, a, a)
}

// fill posts Sends that nobody receives until there is no more room.
func fill(c *verbs.Conn, m *verbs.MR) {
	sge := make([]verbs.SGE, 16)
	for i := range sge {
		sge[i] = m.SGE(0, 64)
	}
	for c.PostSend(&verbs.SendWR{Op: verbs.OpSend, SGE: sge}) == nil {
	}
}

// TestRunInSmallGroup: urdma run works in a container of 64 MiB. If the memory does not suffice, it says so.
func TestRunInSmallGroup(t *testing.T) {
	for _, c := range []struct {
		limit  int
		args   []string
		status string
		says   string
	}{
		{64 << 20, []string{"--", "sh", "-c", "rping -s -a 127.0.0.1 -C 5 & until urdma show listener | grep -q rping; " +
			"do :; done; rping -c -a 127.0.0.1 -C 5 -v"}, "<nil>", "ping data: rdma-ping-4"},
		{24 << 20, []string{"--hosts", "2", "--", "true", "::", "true"}, "exit status 125", "memory of the container"},
	} {
		l := labtest.New(t)
		path := filepath.Dir(l.Program("urdma")) + ":" + os.Getenv("PATH")
		var p *lab.Process
		within(t, memoryGroup(t, c.limit), func() (err error) {
			run := append([]string{l.Program("urdma"), "run"}, c.args...)
			p, err = l.Start(lab.Options{Env: []string{"PATH=" + path}}, run...)
			return err
		})
		err := p.Wait(2 * patience)
		if !strings.HasSuffix(fmt.Sprint(err), c.status) || !strings.Contains(p.Output(), c.says) {
			t.Errorf("%d MiB: %v, expected %s and %q\n%s", c.limit>>20, err, c.status, c.says, p.Output())
		}
	}
}

// TestProgramInSmallGroup: if the kernel kills a program for its memory, urdmad continues without any of its objects.
func TestProgramInSmallGroup(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	p.advances("at the beginning")
	before := descriptors(t, a)
	var hog *lab.Process
	binary := copied(t, a)
	within(t, memoryGroup(t, 96<<20), func() (err error) {
		hog, err = a.Start("env", programEnv+"=hog "+a.Socket(), binary)
		return err
	})
	err := hog.Wait(2 * patience)
	if err == nil || !strings.Contains(err.Error(), "killed") && !strings.Contains(err.Error(), "exit status") {
		t.Errorf("a program with 256 MiB of registered memory in a cgroup of 96: %v\n%s", err, hog.Output())
	}
	t.Logf("the program: %v %s", err, strings.TrimSpace(hog.Output()))
	running(t, a)
	p.advances("afterwards")
	awaits(t, "nothing of it is left", patience, func() bool { return descriptors(t, a) <= before })
}
