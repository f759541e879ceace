package faults

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestRefusedCalls runs real programs, with threads and without, for which the kernel refuses system calls that urdma
// uses where possible. Each program works on another path, or fails with a reason. urdmad and a checked pair running
// at the same time are not affected.
func TestRefusedCalls(t *testing.T) {
	refuse := programtest.Compile(t, filepath.Join(t.TempDir(), "refuse"), "testdata/refuse.c")
	a, _ := labtest.Join(t, lab.Loopback, nil)
	p := pair(t, a, a)
	server := serveRping(t, a)
	defer server.Kill()
	to, err := install(a, refuse, "refuse")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		may  bool // whether the program may fail
	}{
		{"ptrace", false},            // Yama: neither side needs it
		{"process_vm_readv", false},  // the same
		{"memfd_create", true},       // no memory can be shared
		{"io_uring_setup", false},    // sysctl kernel.io_uring_disabled
		{"sched_setaffinity", false}, // no core to yield to
		{"mlock", false},             // RLIMIT_MEMLOCK of 0
	} {
		t.Run(c.what, func(t *testing.T) {
			attempt(t, a, c.may, to, c.what, "rping")
			p.advances("beside a program without " + c.what)
			running(t, a)
		})
	}
	t.Run("dumpable", func(t *testing.T) {
		// If a program's user can't read it, the kernel gives its /proc/self to root, including the file that
		// the fallback path needs.
		rping, err := exec.LookPath("rping")
		if err != nil {
			t.Skip(err)
		}
		unreadable := filepath.Join(filepath.Dir(a.Directory()), "unreadable")
		if out, err := exec.Command("install", "-m", "711", rping, unreadable).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		attempt(t, a, true, unreadable)
		p.advances("beside a program that is not dumpable")
		running(t, a)
	})
}

// attempt runs a client of serveRping, with a command line that ends with rping. The client works, or, if it may
// fail, ends with an exit status.
func attempt(t *testing.T, n *lab.Node, may bool, argv ...string) {
	t.Helper()
	client, err := n.Exec(append(argv, "-c", "-V", "-C", "5", "-a", n.Address)...)
	if err != nil {
		t.Fatal(err)
	}
	err = client.Wait(patience)
	works := err == nil && !strings.Contains(client.Output(), "wait for ")
	failed := err != nil && strings.Contains(err.Error(), "exit status") && client.Output() != ""
	if !works && !(may && failed) {
		t.Errorf("%v: %v\n%s", argv, err, client.Output())
	}
	t.Logf("%v works: %v %s", argv, works, lab.Tail(client.Output(), 3))
}
